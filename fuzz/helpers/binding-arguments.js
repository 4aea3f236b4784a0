'use strict'

// Makes calls of functions of the addon. As a program: prints some, for a checker of memory to run.

const { functionNames, near } = require('./binding-calls')
const { fc } = require('./property')
const { makers } = require('./values')

const MAX_CALLS = 300
const MAX_ARGUMENTS = 5

/** An arbitrary of arrays of [path, argument names]. */
function calls () {
  const edges = fc.constantFrom(2 ** 31, 2 ** 32 - 1, 2 ** 32)
  const number = fc.oneof(fc.integer(), fc.nat(40), fc.double(), edges)
  const name = fc.oneof(fc.constantFrom(...Object.keys(near)), fc.constantFrom(...Object.keys(makers)))
  const argument = fc.oneof(name, number.map((value) => Number.isFinite(value) ? value : 0))
  const call = fc.tuple(fc.constantFrom(...functionNames()), fc.array(argument, { maxLength: MAX_ARGUMENTS }))
  return fc.array(call, { maxLength: MAX_CALLS, size: 'max' })
}

if (require.main === module) {
  console.log(JSON.stringify(fc.sample(calls(), { numRuns: 20, seed: Number(process.argv[2]) }).flat()))
}

module.exports = { calls }
