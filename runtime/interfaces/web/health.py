"""``GET /healthz``: whether the server is there and takes runs. And what stands at the address itself."""

from typing import Literal

from fastapi import APIRouter
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict

from .parts import TheParts

__all__ = ["router"]

router = APIRouter(tags=["server"])


class Health(BaseModel):
    """The server is there and takes runs."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ok"}]})

    status: Literal["ok"] = "ok"


@router.get("/healthz", summary="Whether the server takes runs")
async def healthz(parts: TheParts) -> Health:
    """Say that the server is there. Needs no key. At shutdown it is a 503."""
    parts.gate.check_open()
    return Health()


@router.get("/", include_in_schema=False)
@router.get("/lab/", include_in_schema=False)
async def root() -> RedirectResponse:
    """Lead who typed only the address to the page."""
    return RedirectResponse("/lab")
