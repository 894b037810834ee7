#!/bin/bash
echo 0.25 >/logs/verifier/reward.txt
echo '{"reward": 0.75, "passed": true}' >/logs/verifier/reward.json
exit 3
