#!/bin/bash
echo "$(id -un) $PWD $HOME $FROM_TASK $FROM_SOLUTION" >user.txt
