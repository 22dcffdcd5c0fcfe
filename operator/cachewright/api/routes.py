"""`spec.routes`: which requests are cached, in which layers, under which rules."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from cachewright.api.base import ApiModel, Rule
from cachewright.api.model import UpstreamPath
from cachewright.api.references import HeaderName
from cachewright.api.semantic import Threshold

RouteLayer = Literal["Exact", "Semantic"]
"""Layers that a route can look into."""


RouteName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
"""Name of a route."""


class RouteMatch(ApiModel):
    """Which requests a route takes."""

    path: UpstreamPath = "/v1/chat/completions"
    """Exact path of the request at the gateway."""


DocumentMark = Annotated[str, Field(min_length=1, max_length=64)]
"""What stands before or after the id of a document in a text."""


class Between(ApiModel):
    """Two marks around a part of a text."""

    rules = (
        Rule(
            cel="!self.end.contains(self.start)",
            message="end must not contain start, else nothing ever stands between them",
            field=".end",
        ),
    )

    start: DocumentMark
    """What stands before, such as `<doc id=`."""
    end: DocumentMark
    """What stands after, such as `>`; the first one after a start counts."""


class ExtractDocuments(ApiModel):
    """How the ids of documents are found in the texts of a request."""

    between: Between
    """Each id stands between these two marks, anywhere in the body's texts."""


class QuestionSpan(ApiModel):
    """Where the question stands in the user's last text, or in the prompt of `/v1/completions`."""

    between: Between
    """It stands between these two marks, each of which must be there exactly once; all else is compared
    exactly."""


class Experiment(ApiModel):
    """An experiment whose arms never share answers."""

    arm_header: HeaderName
    """Name of the header that carries the arm; a request without exactly one arm is not cached."""


class PromptTemplate(ApiModel):
    """The template that the prompts of a route are made with."""

    version: Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[!-~]+$")]
    """Version of the template; change it, and no answer from before is served on this route."""


class Route(ApiModel):
    """Rules for the requests that match; the first matching route wins."""

    rules = (
        Rule(
            cel="!self.layers.exists(l, l == 'Semantic') || self.layers.exists(l, l == 'Exact')",
            message="layers with Semantic need Exact too, which is asked first",
            field=".layers",
        ),
        Rule(
            cel="!has(self.question) || self.layers.exists(l, l == 'Semantic')",
            message="question needs the layer Semantic in the route's layers",
            field=".question",
        ),
        Rule(
            cel="!has(self.threshold) || self.layers.exists(l, l == 'Semantic')",
            message="threshold needs the layer Semantic in the route's layers",
            field=".threshold",
        ),
    )

    name: RouteName
    """Name of the route in metrics and `Cache-Status`; unique."""
    match: RouteMatch = Field(default_factory=RouteMatch)
    """Which requests the route takes."""
    layers: Annotated[list[RouteLayer], Field(max_length=8)] = Field(
        default=["Exact"], json_schema_extra={"x-kubernetes-list-type": "set"}
    )
    """Layers looked into; an empty list caches nothing."""
    sampling: Literal["Strict", "ForceZero", "AssumeDeterministic"] = "Strict"
    """Which requests are cached. Strict: only those with an explicit temperature 0; one that leaves it out
    is sampled. ForceZero: all; temperature 0 and top_p 1 are written into them, and the header
    `Cachewright-Forced` says so. AssumeDeterministic: also those without a temperature, for models that
    refuse one."""
    prompt_template: PromptTemplate | None = None
    """The template of this route's prompts, where the requests do not show it."""
    experiment: Experiment | None = None
    """Keeps the arms of an experiment apart."""
    documents: Literal["Optional", "Required"] = "Optional"
    """Ids of the documents that an answer may quote, from the header `Cachewright-Documents`, from
    `metadata.cachewright_documents` or from the text; answers are shared only between requests that name the
    same. Required: a request that names none is not cached."""
    extract_documents: ExtractDocuments | None = None
    """How ids of documents are found in the text."""
    question: QuestionSpan | None = None
    """Where the question stands in the text, for the layer Semantic; without it, the user's last text is the
    question. Routes with documents need it to be matched by similarity."""
    threshold: Threshold | None = None
    """Least cosine of a match on this route; wins over the layer's."""
    side_effects: bool = False
    """True for requests that make something happen; they are never cached."""
