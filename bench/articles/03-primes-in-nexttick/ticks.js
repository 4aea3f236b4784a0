'use strict'

// A sieve for primes per tick, with a limit that decreases by one each time, in three forms; and recursions
// in five ways.

/** Counts primes. @param {number} limit */
function sieve (limit) {
  const crossed = Buffer.alloc((limit >> 3) + 1) // a bit per number
  const primes = []
  for (let n = 2; n <= limit; n++) {
    if (crossed[n >> 3] & (1 << (n & 7))) continue
    primes.push(n)
    for (let m = n * n; m <= limit; m += n) crossed[m >> 3] |= 1 << (m & 7)
  }
  return primes.length
}

/** A small closure per tick, with the sieve outside. `done` gets the number of primes of all ticks. */
function hoisted (limit, done, count = 0) {
  process.nextTick(function tick () {
    count += sieve(limit)
    if (limit === 0) done(count)
    else hoisted(limit - 1, done, count)
  })
}

/** A large closure per tick, with the sieve inside. */
function inline (limit, done, count = 0) {
  process.nextTick(function tick () {
    const crossed = Buffer.alloc((limit >> 3) + 1)
    const primes = []
    for (let n = 2; n <= limit; n++) {
      if (crossed[n >> 3] & (1 << (n & 7))) continue
      primes.push(n)
      for (let m = n * n; m <= limit; m += n) crossed[m >> 3] |= 1 << (m & 7)
    }
    count += primes.length
    if (limit === 0) done(count)
    else inline(limit - 1, done, count)
  })
}

/** No closure: nextTick passes the arguments. */
function passed (limit, done, count = 0) {
  process.nextTick(tickOfPassed, limit, done, count)
}

function tickOfPassed (limit, done, count) {
  count += sieve(limit)
  if (limit === 0) done(count)
  else passed(limit - 1, done, count)
}

/** @type {Record<string, typeof hoisted>} */
const forms = { hoisted, inline, passed }

// Each callback of a recursion starts the next one. `begin` starts the first

/** @type {Record<string, (remaining: number, done: () => void) => void>} */
const ways = {
  'process.nextTick': function again (remaining, done) {
    if (remaining === 0) return done()
    process.nextTick(again, remaining - 1, done)
  },
  queueMicrotask: function again (remaining, done) {
    if (remaining === 0) return done()
    queueMicrotask(() => again(remaining - 1, done))
  },
  setImmediate: function again (remaining, done) {
    if (remaining === 0) return done()
    setImmediate(again, remaining - 1, done)
  },
  'promise.then': function again (remaining, done) {
    if (remaining === 0) return done()
    Promise.resolve().then(() => again(remaining - 1, done))
  },
  await: async function again (remaining, done) {
    while (remaining-- > 0) await undefined
    done()
  }
}

/** @param {string} way @param {number} length in callbacks @param {() => void} done */
function begin (way, length, done) {
  const again = ways[way]
  again(length, done)
}

module.exports = { forms, ways, begin }
