#!/bin/bash
cp given.txt answer.txt
