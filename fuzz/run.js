'use strict'

// npm run fuzz -- [targets] [--seconds N] [--count N] [--seed S] [--list]
//
// Plays generated inputs against longstack. A target is a file of this directory that exports
// { name, run({ seed, count, seconds, log }) }; `run` resolves with the number of inputs, and rejects with
// what it found. Each target runs in a process of its own, so that one that crashes or hangs is a finding
// like any other. Exit code 1: there is a finding; 2: wrong usage.

const { spawn } = require('node:child_process')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { listTargets } = require('./helpers/targets')

const DEFAULT_SECONDS = 10
const MAX_SEED = 2 ** 31
const HANG_MS = 300_000 // past the time that a target was given, for an input that never ends

const usage = `Usage: npm run fuzz -- [targets] [--seconds N] [--count N] [--seed S] [--list]

  --seconds N  time for each target (default ${DEFAULT_SECONDS}, without --count)
  --count N    inputs for each target
  --seed S     integer: the same seed makes the same inputs
  --list       prints the targets`

/**
 * @param {string} text
 * @param {string} name of the flag
 * @returns {number}
 */
function integer (text, name) {
  if (!/^\d{1,10}$/.test(text)) fail(`--${name} must be a non-negative integer, received "${text}"`)
  return Number(text)
}

/** @param {string} message */
function fail (message) {
  console.error(`${message}\n\n${usage}`)
  process.exit(2)
}

function readArguments () {
  try {
    const string = /** @type {const} */ ({ type: 'string' })
    const boolean = /** @type {const} */ ({ type: 'boolean' })
    const options = { seconds: string, count: string, seed: string, list: boolean, help: boolean }
    return parseArgs({ options, allowPositionals: true })
  } catch (error) {
    return fail(/** @type {Error} */ (error).message)
  }
}

/**
 * Runs a target in a process of its own.
 * @param {string} name
 * @param {{ seed: number, count?: number, seconds?: number }} settings
 * @returns {Promise<string | undefined>} what went wrong
 */
function play (name, settings) {
  const file = path.join(__dirname, 'helpers', 'play.js')
  const args = ['--expose-gc', file, name, JSON.stringify(settings)]
  const child = spawn(process.execPath, args, { stdio: 'inherit' })
  let hung = false
  const timer = setTimeout(() => {
    hung = true
    child.kill('SIGKILL')
  }, (settings.seconds ?? 0) * 1000 + HANG_MS)
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.on('exit', (code, signal) => {
      clearTimeout(timer)
      if (hung) return resolve('did not end')
      resolve(code === 0 ? undefined : signal === null ? `exit code ${code}` : `ended by ${signal}`)
    })
  })
}

async function main () {
  const { values, positionals } = readArguments()
  if (values.help) return console.log(usage)
  const targets = listTargets()
  if (values.list) return console.log(targets.join('\n'))
  const unknown = positionals.find((name) => !targets.includes(name))
  if (unknown !== undefined) fail(`Unknown target "${unknown}"; there are ${targets.join(', ')}`)
  const count = values.count === undefined ? undefined : integer(values.count, 'count')
  const seconds = values.seconds === undefined ? undefined : integer(values.seconds, 'seconds')
  const seed = values.seed === undefined ? Math.floor(Math.random() * MAX_SEED) : integer(values.seed, 'seed')
  const settings = { seed, count, seconds: seconds ?? (count === undefined ? DEFAULT_SECONDS : undefined) }
  for (const name of positionals.length > 0 ? positionals : targets) {
    const failure = await play(name, settings)
    if (failure === undefined) continue
    process.exitCode = 1
    const limit = count === undefined ? `--seconds ${settings.seconds}` : `--count ${count}`
    console.error(`${name}: ${failure}; repeat with: npm run fuzz -- ${name} --seed ${seed} ${limit}`)
  }
}

main()
