"""How a model is asked."""

from pydantic import Field

from deskfork.core.config import StrictModel


class ModelSettings(StrictModel):
    """How the model is asked; what is None is left to the model's own default."""

    timeout_s: float = Field(default=180.0, gt=0)
    """For one call, seconds."""
    attempts: int = Field(default=4, ge=1, le=10)
    """How often one call is made when the API is busy or unreachable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    """Length of one answer; some reasoning models refuse to be given this or a temperature."""
