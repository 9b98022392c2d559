"""skops: a file that runs no code, with the list of types that it may load."""

import numpy as np
import pytest

from dpselect.export import TRUSTED_TYPES

sio = pytest.importorskip("skops.io")


def test_skops(people, tmp_path):
    for model in (people.model, people.plain):
        sio.dump(model, tmp_path / "model.skops")
        loaded = sio.load(tmp_path / "model.skops", trusted=TRUSTED_TYPES)
        assert np.array_equal(loaded.predict_proba(people.new), model.predict_proba(people.new))
    with pytest.raises(Exception, match="[Uu]ntrusted"):
        sio.load(tmp_path / "model.skops", trusted=[])
