'use strict'

// node examples/03-primes-in-nexttick.js
//
// 30,000 ticks. Each tests one number and schedules the next. The chain of an error at the end has
// one hop with a count, and tracing does not keep 30,000 contexts.
//
// The test of a number is inside the closure passed to nextTick, or in a function beside it. In "You Did
// What?!? Understanding Node Optimizations" (Trevor Norris, 2013) the large closure took 4.2 times as long;
// measured again in docs/articles.md.

const { setImmediate: nextIteration } = require('node:timers/promises')
const v8 = require('node:v8')
const vm = require('node:vm')
const trace = require('longstack').enable()

const LAST = 30_000

/** @param {number} number @param {number[]} primes those below it @returns {boolean} */
function isPrime (number, primes) {
  for (const prime of primes) {
    if (prime * prime > number) return true
    if (number % prime === 0) return false
  }
  return true
}

/**
 * Schedules a tick with a small closure.
 * @param {number} number
 * @param {number[]} primes
 * @param {() => void} done
 */
function testBeside (number, primes, done) {
  process.nextTick(function tick () {
    if (isPrime(number, primes)) primes.push(number)
    if (number === LAST) done()
    else testBeside(number + 1, primes, done)
  })
}

/** Schedules a tick with a large closure. @type {typeof testBeside} */
function testInside (number, primes, done) {
  process.nextTick(function tick () {
    let isFound = true
    for (const prime of primes) {
      if (prime * prime > number) break
      if (number % prime !== 0) continue
      isFound = false
      break
    }
    if (isFound) primes.push(number)
    if (number === LAST) done()
    else testInside(number + 1, primes, done)
  })
}

/**
 * Starts the ticks in one of the two forms, and waits for the last one.
 * @param {typeof testBeside} test
 * @returns {Promise<{ primes: number[], cpu: number, error: Error, contexts: number }>} cpu: µs per tick
 */
function countPrimes (test) {
  return new Promise((resolve) => {
    const primes = []
    const before = process.cpuUsage()
    test(2, primes, function end () {
      const { user, system } = process.cpuUsage(before)
      const error = new Error(`the end of ${LAST - 1} ticks`)
      resolve({ primes, cpu: (user + system) / LAST, error, contexts: trace.stats().contexts })
    })
  })
}

/** Collects all garbage, as V8 eventually does. */
async function collectGarbage () {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc')
  for (let i = 0; i < 4; i++) {
    await nextIteration()
    collect()
  }
}

async function main () {
  let result
  for (const test of [testBeside, testInside, testBeside, testInside]) { // the first run of each warms V8 up
    result = await countPrimes(test)
    const { primes, cpu } = result
    console.log(`${test.name}: ${primes.length} primes up to ${LAST}, ${cpu.toFixed(2)} µs of CPU per tick`)
  }
  const { error, contexts } = result
  console.log(`\n${error.stack}\n`)
  const [hop] = trace.chain(error)
  console.log(`The first hop stands for ${hop.repeats} ticks; the second is the tick that the caller set.`)

  await collectGarbage()
  console.log(`Contexts that tracing holds, by its estimate: ${contexts} in the last tick, ` +
    `${trace.stats().contexts} after a collection of garbage.`)
}

main()
