"""Query templates in the registry, and the parameter values of their instances, from JSON to RDF terms. It blocks, so
call it from a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aiohttp import web

from triplewire.http.openapi import resource_operations, routes_of
from triplewire.http.openapi.documents import PARAMETER_TYPES, TemplateDocument, TemplateRequestDocument
from triplewire.http.resources import registry_resource as resource
from triplewire.http.resources.bodies import JSON, SUBSCRIPTION_BODY_BYTES, check_members, check_query_size, read_json
from triplewire.http.resources.bulk import NDJSON
from triplewire.http.resources.registry_resource import RegistryResource
from triplewire.matching.prepared_queries import substitute_terms
from triplewire.matching.shapes import lift
from triplewire.model import format_position
from triplewire.model.errors import BadRequest, InputError, InvalidField, TriplewireError
from triplewire.model.terms import XSD, is_iri, is_literal, literal, parse_literal
from triplewire.security import EVERYONE, Principal
from triplewire.sparql import Family, family_of, parse_query
from triplewire.sparql.syntax.lexer import SourceText
from triplewire.sparql.syntax.queries import parse_term
from triplewire.storage.registry.codec import check_name
from triplewire.storage.registry.subscriptions import (
    TEMPLATE,
    QueryTemplate,
    template_from_change,
    template_to_value,
)

TERM, IRI, LITERAL = "term", "iri", "literal"
_NUMBERS = ("integer", "decimal", "double")
DATATYPES = ("string", *_NUMBERS, "boolean", "dateTime", "date")

_TERMS = "an IRI in angle brackets, a literal in quotes, a number, true or false"


def parse_term_value(value: object, type: str = TERM) -> str:
    """Parse a JSON value as an RDF term of a type. Raises ValueError.

    A string that begins with `<` or a quote is a term in N-Triples. Any other is an IRI if the type is `iri`, and the
    lexical form of a literal if the type is a datatype.
    """
    term = _parse_text(value, type) if isinstance(value, str) else _parse_json_value(value, type)
    if not _has_type(term, type):
        raise ValueError(f"{value!r} is not a valid {type}")
    return term


def _parse_text(text: str, type: str) -> str:
    if text[:1] in ("<", '"', "'"):
        return _parse_ntriples(text)
    if type == IRI:
        return _parse_ntriples(f"<{text}>")
    if type in DATATYPES:
        return literal(text, XSD + type)
    raise ValueError(f"{text!r} is not a term; a term is {_TERMS}")


def _parse_ntriples(text: str) -> str:
    try:
        return parse_term(text)
    except InputError as error:
        raise ValueError(f"{text!r} is not a term: {error}") from None


def _parse_json_value(value: object, type: str) -> str:
    if isinstance(value, bool):
        return literal("true" if value else "false", XSD + "boolean")
    if not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a term; a term is {_TERMS}")
    text = repr(value)
    if type in _NUMBERS and not (type == "decimal" and "e" in text):
        return literal(text, XSD + type)
    return literal(text, XSD + ("integer" if isinstance(value, int) else "double" if "e" in text else "decimal"))


def _has_type(term: str, type: str) -> bool:
    if type in (TERM, IRI):
        return type == TERM or is_iri(term)
    if not is_literal(term):
        return False
    return type == LITERAL or (parse_literal(term).datatype == XSD + type and family_of(term) is not Family.OTHER)


_SAMPLES = {
    IRI: "<urn:example>",
    "dateTime": literal("2000-01-01T00:00:00Z", XSD + "dateTime"),
    "date": literal("2000-01-01", XSD + "date"),
    "boolean": literal("true", XSD + "boolean"),
    LITERAL: literal("1"),
    TERM: literal("1"),
}

TemplateValues = tuple[tuple[str, str], ...]


class TemplateManager(RegistryResource[QueryTemplate]):
    """Puts, finds and removes query templates in the registry."""

    kind = TEMPLATE
    noun = "template"
    from_change = staticmethod(template_from_change)

    def put(self, name: str, value: object) -> QueryTemplate:
        """Create or replace a template; instances of the old version stay as they are.

        Raises InvalidField for a wrong field, SparqlSyntax or Unsupported for a text that no instance could have.
        """
        drafted = _parse_template(check_name(name, "a template"), value)
        (version,) = self._registry.put([(TEMPLATE, name, template_to_value(drafted))])
        return replace(drafted, version=version)

    def remove(self, name: str, by: Principal = EVERYONE) -> None:
        """Remove a template; its instances stay. Raises NotFound."""
        self.find(name)
        self._registry.put([(TEMPLATE, name, None)])


def fill_values(template: QueryTemplate, values: Mapping[str, Any]) -> TemplateValues:
    """The terms of an instance, by parameter, in order. Raises InvalidField for a value that is missing, unknown or of
    another type."""
    for name in values:
        if name not in template.parameters:
            known = ", ".join(template.parameters) or "none"
            raise InvalidField(
                "values", f"values has {name}, which is not a parameter of {template.name}; it has {known}"
            )
    for name in template.parameters:
        if name not in values:
            raise InvalidField("values", f"values has no {name}, which is a parameter of {template.name}")
    return tuple((name, _parse_parameter(name, values[name], type)) for name, type in template.parameters.items())


def _parse_parameter(name: str, value: object, type: str) -> str:
    try:
        return parse_term_value(value, type)
    except ValueError as error:
        raise InvalidField("values", f"values has {name}: {error}") from None


def _parse_template(name: str, value: object) -> QueryTemplate:
    if not isinstance(value, dict):
        raise BadRequest('a template is a JSON object such as {"sparql": "SELECT … $sensor …"}')
    check_members(value, "a template", TemplateRequestDocument)
    text = value.get("sparql")
    if not isinstance(text, str) or not text.strip():
        raise InvalidField("sparql", "sparql must hold the text of a query with $parameters")
    template = QueryTemplate(name, check_query_size(text), _parse_parameters(text, value.get("parameters")))
    _check_instantiable(template)
    return template


def _parse_parameters(text: str, given: object) -> dict[str, str]:
    """The parameters of a text (`$name`) in order, with the types that are stated."""
    names = [token.text[1:] for token in SourceText(text).tokens() if token.kind == "variable" and token.text[0] == "$"]
    if given is not None and not isinstance(given, dict):
        raise InvalidField("parameters", 'parameters must be an object such as {"sensor": {"type": "iri"}}')
    stated = {name: _parse_type(name, each) for name, each in (given or {}).items()}
    for name in stated:
        if name not in names:
            raise InvalidField("parameters", f"parameters has {name}, but there is no ${name} in the query")
    return {name: stated.get(name, TERM) for name in dict.fromkeys(names)}


def _parse_type(name: str, value: object) -> str:
    type = value.get("type", TERM) if isinstance(value, dict) and set(value) <= {"type"} else None
    if type not in PARAMETER_TYPES:
        raise InvalidField(
            "parameters", f'parameters has {name}: it must be {{"type": …}} with one of {", ".join(PARAMETER_TYPES)}'
        )
    return str(type)


def _check_instantiable(template: QueryTemplate) -> None:
    """Lift a sample instance, with IRIs or literals as terms. Raises the error that every instance would raise."""
    samples = {name: _SAMPLES.get(type) or literal("1", XSD + type) for name, type in template.parameters.items()}
    query, free = parse_query(template.sparql), [name for name, type in template.parameters.items() if type == TERM]
    try:
        lift(substitute_terms(query, samples), solutions=True)
    except TriplewireError:
        if not free:
            raise
        lift(substitute_terms(query, {**samples, **dict.fromkeys(free, _SAMPLES[IRI])}), solutions=True)


def template_routes(templates: TemplateManager) -> list[web.RouteDef]:
    async def put(name: str, request: web.Request) -> TemplateDocument:
        given = await read_json(request, SUBSCRIPTION_BODY_BYTES, (JSON, NDJSON))
        return template_document(await asyncio.to_thread(templates.put, name, given))

    return routes_of(
        resource.handle_list(resource_operations.TEMPLATES, "templates", templates.all, template_document),
        resource.handle_put(resource_operations.PUT_TEMPLATE, put),
        resource.handle_find(
            resource_operations.FIND_TEMPLATE, lambda name, by: template_document(templates.find(name, by))
        ),
        resource.handle_delete(resource_operations.REMOVE_TEMPLATE, templates.remove),
    )


def template_document(found: QueryTemplate) -> TemplateDocument:
    return TemplateDocument(
        name=found.name,
        version=format_position(found.version),
        sparql=found.sparql,
        parameters={name: {"type": type} for name, type in found.parameters.items()},
    )
