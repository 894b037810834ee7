#!/bin/bash
wc -l </app/words.txt >/app/count.txt
