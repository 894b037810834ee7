#!/bin/bash
reward=0
[ -e /app/one ] && reward=0.5
[ -e /app/two ] && reward=1
echo "$reward" >/logs/verifier/reward.txt
