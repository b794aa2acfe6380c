"""Models with bound options: under one spelling, kept by what is bound later, with the profile of a bound model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.language_models import chat_models
from langchain_core.runnables import RunnableBinding, RunnableSequence

from langchain_cerebras_ext.keywords import canonical_options

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import _ChatModelBinding as _ChatBinding
else:
    # What langchain-core's own `bind` returns; it has the typed signatures of the event streams.
    _ChatBinding = getattr(chat_models, "_ChatModelBinding", RunnableBinding)

_OF_TOOLS = frozenset(("tools", "tool_choice", "parallel_tool_calls"))


class LLMBinding(RunnableBinding[Any, Any]):  # type: ignore[no-redef] # pydantic's plugin adds `kwargs` twice
    """What `CerebrasLLM.bind` returns. In dumps it is langchain-core's `RunnableBinding`."""

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return the id of the class that stands for bound runnables in dumps."""
        return [*cls.get_lc_namespace(), "RunnableBinding"]

    def bind(self, **kwargs: Any) -> Any:
        """Bind further options."""
        return super().bind(**canonical_options(kwargs))


class ModelBinding(_ChatBinding):  # type: ignore[no-redef] # pydantic's plugin adds `kwargs` twice
    """What `ChatCerebras.bind` returns. In dumps it is langchain-core's `RunnableBinding`."""

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return the id of the class that stands for bound runnables in dumps."""
        return [*cls.get_lc_namespace(), "RunnableBinding"]

    def bind(self, **kwargs: Any) -> Any:
        """Bind further options."""
        options = canonical_options(kwargs)
        bound: Any = self.bound
        model = options.get("model")
        twin: Any = super().bind(**options)
        return twin.model_copy(update={"bound": bound.with_profile_of(model)}) if isinstance(model, str) else twin

    # langchain-core would hand these two on to the model, which knows nothing of what is bound here.

    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        """Bind tools beside what is bound; arguments as for the model's `bind_tools`."""
        bound: Any = self.bound
        return self._kept_by(bound.bind_tools(*args, **kwargs))

    def with_structured_output(self, *args: Any, **kwargs: Any) -> Any:
        """Ask for objects with what is bound, but for tools; arguments as for the model's `with_structured_output`."""
        bound: Any = self.bound
        kept = {name: value for name, value in self.kwargs.items() if name not in _OF_TOOLS}
        return self.model_copy(update={"kwargs": kept})._kept_by(bound.with_structured_output(*args, **kwargs))

    def _kept_by(self, runnable: Any) -> Any:
        """Return a runnable of the model with what is bound here beneath its own options."""
        if isinstance(runnable, RunnableBinding):
            return self.bind(**runnable.kwargs)
        if isinstance(runnable, RunnableSequence):
            return RunnableSequence(self._kept_by(runnable.first), *runnable.steps[1:], name=runnable.name)
        return runnable
