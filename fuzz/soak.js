'use strict'

// npm run soak [-- --minutes N | --seconds N] [--rate N] [--bare] [--samples FILE]
//
// Watches a service under load from another process for an hour: memory, spans, descriptors, threads. Prints
// a line for each of at most 60 samples, then a verdict; exit code 1: something grew or was lost, 2: wrong
// usage. Memory is judged from half an hour on, beside the same service without longstack.

const { fork } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { parseArgs } = require('node:util')
const { createRotation } = require('./soak/rotation')
const { judgeSamples, judgeSpans } = require('./soak/verdict')

const MAX_SAMPLES = 60
const MIN_SAMPLE_SECONDS = 2 // each collects garbage
const MIN_JUDGED_SECONDS = 1800 // V8 compiles and grows its heap for some minutes
const MAX_ROTATIONS = 20
const MIN_ROTATION_SECONDS = 5 // a sink may take a second to find out
const BLOCKED_MS = 30
const SETTLE_MS = 15_000
// V8 doubles its new space now and then, also where memory is flat: here it has its size from the start
const NEW_SPACE = ['--min-semi-space-size=16', '--max-semi-space-size=16']

const usage = `Usage: npm run soak -- [options]

  --minutes N   how long (default 60)
  --seconds N   the same
  --rate N      requests a second (default 100)
  --samples FILE  writes the samples to a file as JSON
  --bare        only the service without longstack, which otherwise runs beside from half an hour on`

function readArguments () {
  const string = /** @type {const} */ ({ type: 'string' })
  const boolean = /** @type {const} */ ({ type: 'boolean' })
  const options = {
    minutes: string, seconds: string, rate: string, samples: string, bare: boolean, help: boolean
  }
  try {
    const { values } = parseArgs({ options })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    const { minutes = '60', rate = '100' } = values
    const seconds = values.seconds === undefined ? Number(minutes) * 60 : Number(values.seconds)
    if (!(seconds >= 10) || !(Number(rate) > 0)) throw new Error('a soak takes 10 seconds at least')
    const judgesMemory = seconds >= MIN_JUDGED_SECONDS
    return { seconds, rate: Number(rate), judgesMemory, isBare: values.bare === true, file: values.samples }
  } catch (error) {
    console.error(`${/** @type {Error} */ (error).message}\n\n${usage}`)
    return process.exit(2)
  }
}

/**
 * Waits for a message that has a property.
 * @param {import('node:child_process').ChildProcess} child
 * @param {string} property
 * @returns {Promise<any>} its value
 */
async function received (child, property) {
  for (;;) {
    const [message] = await once(child, 'message')
    if (property in message) return message[property]
  }
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {string} question
 * @param {string} property of the answer
 * @returns {Promise<any>}
 */
function answer (child, question, property) {
  const promise = received(child, property)
  child.send({ question })
  return promise
}

/** @param {import('./soak/verdict').Sample} sample @param {number} requests @param {number} rotations */
function row ({ second, heapUsed, rss, descriptors, threads, stats, made }, requests, rotations) {
  const { contexts = 0, stacks = 0, bytes = 0, spans = { open: 0, ended: 0 } } = stats
  const [heap, resident, own] = [heapUsed, rss, bytes].map((figure) => (figure / 2 ** 20).toFixed(1))
  return [
    (second / 60).toFixed(1), requests, heap, resident, descriptors, threads, contexts, stacks, own,
    spans.open, spans.ended, made.reported, rotations
  ].map((cell) => String(cell).padStart(9)).join('')
}

/** @param {Record<string, number>} answered by route and otherwise @returns {number} by the service */
function answeredIn (answered) {
  return Object.entries(answered).reduce((sum, [name, count]) => name.startsWith('/') ? sum + count : sum, 0)
}

const titles = [
  'minute', 'requests', 'heap MB', 'RSS MB', 'fds', 'threads', 'contexts', 'stacks', 'own MB', 'open',
  'ended', 'blocked', 'rotated'
].map((title) => title.padStart(9)).join('')

/** @param {string} file of spans @param {boolean} isBare */
function startServer (file, isBare) {
  const preload = isBare ? [] : ['-r', path.join(__dirname, '..', 'lib', 'register.js')]
  const variables = isBare
    ? { SOAK_BARE: '1' }
    : { LONGSTACK_SPANS: file, LONGSTACK_BLOCKED: String(BLOCKED_MS) }
  return fork(path.join(__dirname, 'soak', 'server.js'), {
    execArgv: ['--expose-gc', ...NEW_SPACE, ...preload],
    env: { ...process.env, ...variables },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc']
  })
}

/**
 * Waits until nothing is open, ends both processes, and prints the verdict.
 * @param {any} soak
 * @returns {Promise<boolean>} whether all is fine
 */
async function finish ({ server, load, samples, first, rotation, judgesMemory, isBare, bareRun }) {
  const answered = await answer(load, 'count', 'answered')
  const deadline = performance.now() + SETTLE_MS
  let last = await answer(server, 'sample', 'sample')
  while (last.stats.spans?.open > 0 && performance.now() < deadline) {
    await sleep(200)
    last = await answer(server, 'sample', 'sample')
  }
  const exit = Promise.race([once(server, 'exit'), sleep(SETTLE_MS, ['did not end'])])
  load.send({ question: 'end' })
  server.send({ question: 'end' })
  const [code] = await exit
  rotation.finish()
  const { counts } = rotation
  const verdicts = [
    ...judgeSamples({ samples, bareSamples: await bareRun?.samples(), first, last, judgesMemory }),
    ...isBare ? [] : judgeSpans({ ...answered, jobs: last.made.jobs }, counts),
    { isFine: code === 0, line: `exit of the service: ${code}` }
  ]
  const megabytes = (counts.bytes / 2 ** 20).toFixed(0)
  const { reported, blocks } = last.made
  console.log(`\nspans: ${counts.files} files, ${megabytes} MB; blocking: ${blocks}, ${reported} reported`)
  for (const { isFine, line } of verdicts) console.log(`${isFine ? 'fine ' : 'WRONG'}  ${line}`)
  return verdicts.every(({ isFine }) => isFine)
}

/**
 * Starts the same soak without longstack.
 * @param {string} directory for its samples
 * @param {number} seconds
 * @param {number} rate
 */
function startBareRun (directory, seconds, rate) {
  const file = path.join(directory, 'bare.json')
  const values = ['--bare', '--seconds', String(seconds), '--rate', String(rate), '--samples', file]
  const child = fork(__filename, values, { stdio: 'ignore' })
  const ended = once(child, 'exit')
  return {
    /** @returns {Promise<import('./soak/verdict').Sample[]>} once it has ended */
    async samples () {
      await ended
      return JSON.parse(fs.readFileSync(file, 'utf8'))
    }
  }
}

async function main () {
  process.on('disconnect', () => process.exit(1)) // the run beside which this one is bare was ended
  const { seconds, rate, judgesMemory, isBare, file: samplesFile } = readArguments()
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-soak-'))
  const file = path.join(directory, 'spans.ndjson')
  const rotation = createRotation(directory, file)
  const server = startServer(file, isBare)
  const ports = await received(server, 'ports')
  const load = fork(path.join(__dirname, 'soak', 'load.js'))
  server.send({ upstream: await received(load, 'upstream') })
  for (const child of [server, load]) child.on('exit', (code) => { if (code !== 0) process.exitCode = 1 })

  const first = await answer(server, 'sample', 'sample')
  const end = received(load, 'isOver')
  load.send({ ports, rate, seconds })
  const samples = []
  const rotationSeconds = Math.max(seconds / MAX_ROTATIONS, MIN_ROTATION_SECONDS)
  let lastRotation = 0
  let rotations = 0
  const bareRun = judgesMemory && !isBare ? startBareRun(directory, seconds, rate) : undefined
  const started = performance.now()
  const subject = `Node ${process.version}${isBare ? ', bare' : ''}`
  console.log(`${subject}, ${seconds} s, ${rate} requests a second\n${titles}`)
  const count = Math.min(MAX_SAMPLES, Math.floor(seconds / MIN_SAMPLE_SECONDS))
  for (let index = 1; index <= count; index++) {
    await sleep(Math.max(0, started + seconds * 1000 * index / count - performance.now()))
    const sample = await answer(server, 'sample', 'sample')
    const second = (performance.now() - started) / 1000
    samples.push({ ...sample, second })
    const requests = await answer(load, 'count', 'answered')
    if (second - lastRotation >= rotationSeconds) {
      lastRotation = second
      rotations = rotation.rotate()
    }
    console.log(row(/** @type {any} */ (samples.at(-1)), answeredIn(requests), rotations))
    if (samplesFile !== undefined) fs.writeFileSync(samplesFile, JSON.stringify(samples))
  }
  await end
  const isFine = await finish({ server, load, samples, first, rotation, judgesMemory, isBare, bareRun })
  fs.rmSync(directory, { recursive: true, force: true })
  process.exit(isFine ? 0 : 1)
}

main()
