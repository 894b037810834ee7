"""Tests that need numpy, which check.sh installs."""

import base64
import unittest

import numpy

from test_sample import sample


class WithNumpy(unittest.TestCase):
    def test_numpy_arrays_share_the_memory_of_the_ids(self):
        whole = sample()
        arrays = whole.to_arrays()
        self.assertTrue(numpy.shares_memory(arrays["response_ids"], numpy.frombuffer(whole.response_ids, "int32")))
        self.assertEqual({key: str(value.dtype) for key, value in arrays.items()}, {"prompt_ids": "int32", "response_ids": "int32", "mask": "int8", "log_probs": "float32"})
        with self.assertRaises(ValueError):
            arrays["response_ids"][0] = 9

    def test_experts_are_one_table_whose_later_rows_win(self):

        def block(start, *ids):
            return {"start": start, "dtype": "uint8", "layers": 1, "top_k": 2, "rows": base64.b64encode(bytes(ids)).decode()}

        whole = sample(routed_experts=(block(0, 1, 1, 2, 2, 3, 3), block(2, 4, 4, 5, 5, 6, 6)))
        self.assertEqual(whole.experts()[:, 0, 0].tolist(), [1, 2, 4, 5, 6])
        self.assertEqual(whole.experts().dtype, numpy.int16)
        self.assertEqual(whole.fit(2, 3, "keep").experts()[:, 0, 0].tolist(), [1, 2, 4, 5])
        self.assertIsNone(sample(routed_experts=(block(0, 1, 1), block(2, 4, 4, 5, 5, 6, 6))).experts())
        self.assertIsNone(sample().experts())


if __name__ == "__main__":
    unittest.main()
