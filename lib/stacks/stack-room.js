'use strict'

// Room on the stack. Where a program has caught a stack overflow and reads `.stack` on the way back, everything that longstack
// does may overflow again. Most of that ends in a RangeError, which is caught; what V8 aborts for (see scan.js) must not begin
// without room for it. Arguments take room that no optimization takes back: V8 checks for it before it pushes them
// (Generate_CallOrConstructVarargs in src/builtins/x64/builtins-x64.cc, and likewise for other processors).

const WORD = 8 // bytes
const SOME = Array((16 << 10) / WORD).fill(undefined)
const MUCH = Array((64 << 10) / WORD).fill(undefined)

const { apply } = Reflect

function nothing () {}

/** Is there room for a story? That takes up to 5 KB. */
function hasRoom () {
  try {
    apply(nothing, undefined, SOME)
    return true
  } catch {
    return false
  }
}

/**
 * Makes sure of room for libraries and files: 64 KB.
 * @throws {RangeError} where there is none
 */
function requireRoom () {
  apply(nothing, undefined, MUCH)
}

module.exports = { hasRoom, requireRoom }
