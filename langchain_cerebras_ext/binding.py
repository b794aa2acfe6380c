"""A chat model with bound options, whose profile is that of the model that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.language_models import chat_models
from langchain_core.runnables import RunnableBinding

if TYPE_CHECKING:
    from langchain_core.language_models.chat_models import _ChatModelBinding as _Binding
else:
    # What langchain-core's own `bind` returns; it has the typed signatures of the event streams.
    _Binding = getattr(chat_models, "_ChatModelBinding", RunnableBinding)


class ModelBinding(_Binding):  # type: ignore[no-redef] # pydantic's plugin adds `kwargs` twice
    """What `ChatCerebras.bind` returns. In dumps it is langchain-core's `RunnableBinding`."""

    @classmethod
    def lc_id(cls) -> list[str]:
        """Return the id of the class that stands for bound runnables in dumps."""
        return [*cls.get_lc_namespace(), "RunnableBinding"]

    def bind(self, **kwargs: Any) -> Any:
        """Bind further options."""
        bound: Any = self.bound
        model = kwargs.get("model")
        twin: Any = super().bind(**kwargs)
        return twin.model_copy(update={"bound": bound.with_profile_of(model)}) if isinstance(model, str) else twin
