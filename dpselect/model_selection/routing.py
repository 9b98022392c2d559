"""Weights of records and ids of persons on their way through a search."""

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ..base.capabilities import TakesGroups, require, require_weights
from ..preprocessing.tabular import TabularPipeline
from ..records.persons import check_weighs_persons
from ..utils.validation import refuse_fit_params
from .private_steps import check_groups_are_taken as check_steps_take_groups


def take_weights(search, params):
    """Return the `sample_weight` among what `fit` of a search was given, or None; refuse all else.

    It goes by the name of the model, ``step__sample_weight`` for a Pipeline, or its own for a
    TabularPipeline; with metadata routing by what the model has requested.
    """
    estimator, name = search.estimator, "sample_weight"
    if get_config()["enable_metadata_routing"] and params:
        params = _routed(search, params)
    elif isinstance(estimator, Pipeline):
        name = f"{estimator.steps[-1][0]}__sample_weight"
    params = dict(params)
    if isinstance(estimator, TabularPipeline) and name not in params and "sample_weight" in params:
        name = "sample_weight"
    weight = params.pop(name, None)
    instead = f"write {name}=..." if "sample_weight" in params else "leave it out"
    if any(name.endswith("__groups") for name in params):
        instead = "write groups=..., of which a search tells all steps, to protect persons"
    refuse_fit_params(search, params, instead)
    return weight


def weights_among(search, params):
    """Return the weights of records among what `fit` was given, or None; nothing is refused."""
    name = "sample_weight"
    if isinstance(search.estimator, Pipeline):
        name = f"{search.estimator.steps[-1][0]}__sample_weight"
    return params.get(name, params.get("sample_weight"))


def _routed(search, params):
    mapping = MethodMapping().add(caller="fit", callee="fit")
    router = MetadataRouter(owner=search).add(estimator=search.estimator, method_mapping=mapping)
    params = process_routing(router, "fit", **params).estimator.fit
    if not isinstance(search.estimator, Pipeline):
        return params
    steps, last = process_routing(search.estimator, "fit", **params), search.estimator.steps[-1][0]
    return {
        name if step == last else f"{step}__{name}": value
        for step, methods in steps.items()
        for routed in methods.values()
        for name, value in routed.items()
    }


def check_groups_are_taken(estimator, models, score=None, strategy=None):
    """Refuse rows of persons, before any data is read, if something does not take them."""
    check_steps_take_groups(estimator)
    if not getattr(strategy, "takes_groups", True):
        raise TypeError(
            f"groups were given, and strategy={strategy.__name__} does not say that it cuts persons and "
            "not rows, of which one person may have many; leave groups out, or cut by "
            "dpselect.records.take_part and set takes_groups = True."
        )
    for model in models:
        require(TakesGroups, model, "groups", "leave them out")
        model.check_takes_groups()
    if score is not None:
        check_weighs_persons(score)


def check_weights_are_taken(models):
    """Refuse weights of records, before any data is read, if a model does not take them."""
    for model in models:
        require_weights(model)
