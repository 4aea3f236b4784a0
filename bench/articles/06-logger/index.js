'use strict'

// A logger: the cost of a line written immediately, through a stream, or gathered; and of an error logged
// with its stack, or its chain if traced. After "Simple Logging in tweeter.js" (Jim Schubert, 2012), which
// gives each level a stream; that article has no figures.
//
//     node bench/articles/06-logger --answers             prints the log and the bytes on the wire
//     node bench/articles/06-logger --json [--quick]      measures the claims once
//     node bench/articles/06-logger serve DIRECTORY PORT  logging server, forked by its parent

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { obey, start, main } = require('../common/measure')
const { answers } = require('./answers')
const claims = require('./claims.json')
const { createLogger } = require('./logger')
const { FileOutput, StreamOutput } = require('./outputs')
const { serve } = require('./server')

const FULL = { lines: 20_000, warm: 60_000, rounds: 2 }
const QUICK = { lines: 200, warm: 200, rounds: 0.5 }
const ERRORS = 1 / 5 // fraction of the lines, if they are errors
const BATCH = 10 // lines per event loop iteration

/** The ways on each side of a claim. @type {Record<string, [string, string]>} */
const comparedWays = {
  'log-at-once-over-stream': ['stream', 'once'],
  'log-at-once-over-gathered': ['gathered', 'once'],
  'log-chain-over-message': ['message', 'chain']
}

const logTo = (file, options) => createLogger([new FileOutput(file, options)])
const logToStream = (file) => createLogger([new StreamOutput(file, fs.createWriteStream(file))])
const logGathered = (file) => logTo(file, { gather: 4096 })
const logRequest = (logger, i) => logger.info(`request ${i}: /`)

/**
 * @type {Record<string, { share?: number, make: (file: string) => any, log: (logger: any, i: number) => void
 *   }>}
 */
const ways = {
  gathered: { make: logGathered, log: logRequest },
  once: { make: logTo, log: logRequest },
  stream: { make: logToStream, log: logRequest },
  message: { share: ERRORS, make: logGathered, log: (logger, i) => logger.error(createError(i, 5).message) },
  chain: { share: ERRORS, make: logGathered, log: (logger, i) => logger.error('failed', createError(i, 5)) }
}

/** Creates an error a few frames deep. */
const createError = (i, depth) => depth === 0 ? new Error(`failed ${i}`) : createError(i, depth - 1)

/**
 * The measured child: writes a batch of lines per event loop iteration.
 * @param {string} way
 * @param {string} directory
 */
function write (way, directory) {
  const { make, log } = ways[way]
  const logger = make(path.join(directory, `${way}-${process.pid}.log`))
  /** @param {number} first @param {number} units @param {() => void} done */
  function writeBatch (first, units, done) {
    const end = Math.min(first + BATCH, units)
    for (let i = first; i < end; i++) log(logger, i)
    if (end < units) return setImmediate(writeBatch, end, units, done)
    logger.flush()
    done()
  }
  obey({ run: (units) => new Promise((resolve) => writeBatch(0, units, () => resolve(undefined))) })
}

/** Measures CPU µs per line, by way, with tracing off and on; all children one by one, in both directions. */
async function measureWays ({ lines, warm, rounds }, directory) {
  const states = [{ state: 'off', traced: false }, { state: 'on', traced: true }]
  const ofWay = (way) => states.map((state) => ({ way, child: undefined, ...state }))
  const subjects = Object.keys(ways).flatMap(ofWay)
  const figures = { off: {}, on: {} }
  try {
    for (const subject of subjects) {
      subject.child = await start(__filename, ['write', subject.way, directory], subject)
      await subject.child.run(warm * (ways[subject.way].share ?? 1))
    }
    for (let pass = 0; pass < 2 * rounds; pass++) {
      for (const { way, state, child } of pass % 2 === 0 ? subjects : subjects.toReversed()) {
        const cost = await child.run(lines * (ways[way].share ?? 1))
        figures[state][way] = (figures[state][way] ?? 0) + cost / (2 * rounds)
      }
    }
    return figures
  } finally {
    for (const { child } of subjects) await child?.end()
  }
}

/** @param {boolean} quick */
async function measure (quick) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'logger-'))
  try {
    const { off, on } = await measureWays(quick ? QUICK : FULL, directory)
    return {
      claims: claims.map((claim) => {
        const [a, b] = comparedWays[claim.id]
        return { ...claim, off: { a: off[a], b: off[b] }, on: { a: on[a], b: on[b] } }
      })
    }
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

main({ answers, measure, roles: { serve, write } })
