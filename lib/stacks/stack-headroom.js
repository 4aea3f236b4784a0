'use strict'

// Room on the stack. If a program catches a stack overflow and reads `.stack` on the way back, anything
// longstack does may overflow again. Most overflows end in a RangeError, which is caught. Work that makes V8
// abort (see text-scan.js) must not start without enough room. The probe uses arguments: no optimization
// removes their room, and V8 checks for it before pushing them (Generate_CallOrConstructVarargs in
// src/builtins/x64/builtins-x64.cc).

const BLOCK_KB = 8
const LOADING_KB = 96 // stack needed to load a module of longstack
const WORD = 8 // bytes
const block = Array((BLOCK_KB << 10) / WORD).fill(undefined)

const { apply } = Reflect

function nothing () {}

let blocksLeft = 0

function push () {
  if (--blocksLeft > 0) apply(push, undefined, block)
}

/**
 * Ensures room on the stack, at about 100 ns per KB.
 * @param {number} kb a multiple of BLOCK_KB
 * @throws {RangeError} if there is none
 */
function ensureHeadroom (kb) {
  blocksLeft = kb / BLOCK_KB
  apply(push, undefined, block)
}

/** Ensures room to load a module of longstack. @throws {RangeError} if there is none */
const ensureHeadroomToLoad = () => ensureHeadroom(LOADING_KB)

/** Returns whether the stack has room to create an error's hops, which takes up to 5 KB. */
function hasHeadroom () {
  try {
    apply(nothing, undefined, block)
    return true
  } catch {
    return false
  }
}

module.exports = { hasHeadroom, ensureHeadroomToLoad, ensureHeadroom }
