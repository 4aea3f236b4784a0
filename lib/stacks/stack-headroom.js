'use strict'

// Room on the stack. Where a program has caught a stack overflow and reads `.stack` on the way back,
// everything that longstack does may overflow again. Most of that ends in a RangeError, which is caught; what
// V8 aborts for (see text-scan.js) must not begin without room for it. Arguments take room that no
// optimization takes back: V8 looks for it before it pushes them (Generate_CallOrConstructVarargs in
// src/builtins/x64/builtins-x64.cc).

const BLOCK_KB = 8
const LOADING_KB = 96 // what loading a room of longstack takes
const WORD = 8 // bytes
const block = Array((BLOCK_KB << 10) / WORD).fill(undefined)

const { apply } = Reflect

function nothing () {}

let blocksLeft = 0

function push () {
  if (--blocksLeft > 0) apply(push, undefined, block)
}

/**
 * Makes sure of room on the stack: about 100 ns a KB.
 * @param {number} kb a multiple of BLOCK_KB
 * @throws {RangeError} where there is none
 */
function ensureHeadroom (kb) {
  blocksLeft = kb / BLOCK_KB
  apply(push, undefined, block)
}

/** Makes sure that a module of longstack can be loaded. @throws {RangeError} where it cannot */
const ensureHeadroomToLoad = () => ensureHeadroom(LOADING_KB)

/** Returns whether the stack has room to make the hops of an error, which takes up to 5 KB. */
function hasHeadroom () {
  try {
    apply(nothing, undefined, block)
    return true
  } catch {
    return false
  }
}

module.exports = { hasHeadroom, ensureHeadroomToLoad, ensureHeadroom }
