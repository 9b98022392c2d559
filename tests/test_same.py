"""Keys of caches that know objects, and not values, which may be equal and of other types."""

from dpselect.preprocessing import PublicSchema, TableEncoder
from dpselect.utils.same import Same


def test_the_same_objects_are_one_key():
    one, true = [1], [True]
    assert Same([one, true]) == Same([one, true]) and one == true
    assert Same([one, true]) != Same([true, one]) and Same([one]) != Same([one, one])
    made = {Same([one]): "integers", Same([true]): "booleans"}
    assert made[Same([one])] == "integers" and made[Same([true])] == "booleans"


def test_schemas_that_are_equal_keep_their_own_names():
    """Of a cache by values the second would be named after the first."""
    names = []
    for levels in ([0, 1], [False, True], [0.0, 1.0]):
        schema = PublicSchema({"a": {"categories": levels}})
        encoder = TableEncoder(schema, categories="onehot").fit([[levels[0]]])
        names.append(encoder.get_feature_names_out().tolist())
    assert names == [["a_0", "a_1"], ["a_False", "a_True"], ["a_0.0", "a_1.0"]]
