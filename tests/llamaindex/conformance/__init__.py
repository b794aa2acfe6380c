"""A conformance suite for LlamaIndex LLMs over an OpenAI-like chat or completions endpoint.

It knows nothing of the class under test but its constructor and LlamaIndex's own contract: it talks to the emulator
over HTTP and looks at the bodies that arrive and at the objects that are returned. To run it for another integration:

    LLAMAINDEX_CONFORMANCE_SUBJECTS=my_package.conformance:SUBJECTS pytest tests/llamaindex/conformance

where `SUBJECTS` is a list of `tests.llamaindex.conformance.subjects.Subject`.
"""
