# The thin front: each target says what it does; the work is in scripts/ and the CMake presets.
QUERN := build/release/bin/quern
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help
.PHONY: help setup setup-test build serve test format tidy fuzz docs clean

help:            ## this list
	@sed -n 's/^\([a-z%-]*\):.*## */  make \1\t/p' Makefile | expand -t 20

setup:           ## set the machine up for building and running
	@scripts/setup
setup-test:      ## the same, and for the tests
	@scripts/setup test

build: setup     ## build/release/bin/quern
	@scripts/build release quern

serve: build     ## build, fetch the starter model, serve it
	@$(QUERN) get starter
	@exec $(QUERN) serve

test: setup-test ## everything that a change must pass
	@scripts/test
test-%: setup-test ## one stage of it
	@scripts/test $*

format: setup-test ## write every source as the formatters want it
	@scripts/format
tidy: setup-test ## clang-tidy over every unit
	@scripts/build tidy
fuzz: setup-test ## run each fuzzer for FUZZ_SECONDS
	@scripts/fuzz $(FUZZ_SECONDS)
docs: build      ## write docs/options.md from the option table
	$(QUERN) --help-markdown > docs/options.md

clean:           ## remove what was built
	rm -rf build
