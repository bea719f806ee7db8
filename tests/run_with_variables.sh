#!/usr/bin/env bash
# Runs a test with variables of the environment: run_with_variables.sh NAME=VALUE... TEST [ARGUMENT...]
exec env "$@"
