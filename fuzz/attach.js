'use strict'

// Attaches to a process under load and leaves it again, in all ways that commands and programs have: no
// request is lost, each answer is the same byte for byte, and the process is afterwards as it was before.
//
//     node fuzz/attach.js --count 1000 --node .cache/node/22/bin/node [--control] [--preload] [--alone]
//         [--only incident]
//
// --control only opens and closes the inspector, for memory to compare with. --alone: the program itself does
// not use longstack, so that what was recorded is forgotten each time.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { commandCycles, control, cycles, waitFor } = require('./attach/cycles')
const { Load } = require('./attach/load')

const root = path.join(__dirname, '..')
const CONNECTIONS = 6
const COMMAND_EVERY = 25 // cycles, by default
const MEMORY_EVERY = 10
const WARM_UP = 0.3 // of all cycles
const START_MS = 60_000
const RESTORED_MS = 15_000 // of a command that was killed before it was connected, after 10 s
const MAX_FINDINGS = 5
const names = Object.keys(cycles)
const commandNames = Object.keys(commandCycles)

/**
 * @typedef {object} Settings
 * @property {number} seed
 * @property {number} [count] cycles
 * @property {number} [seconds]
 * @property {string} [node] the binary
 * @property {boolean} [isControl]
 * @property {string} [only] name of a cycle
 * @property {number} [commandEvery] cycles from one with a command to the next
 * @property {boolean} [isPreloaded]
 * @property {boolean} [isAlone]
 * @property {(line: string) => void} [log]
 *
 * @typedef {{ main: Memory, worker: Memory }} Sample
 * @typedef {{ heapUsed: number, external: number, arrayBuffers: number, rss: number }} Memory
 */

/** @param {number} seed @returns {() => number} mulberry32 */
function createRandom (seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}

/** @param {string} node @param {boolean} isPreloaded */
async function startService (node, isPreloaded) {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name))
  const env = { ...Object.fromEntries(inherited), ...(isPreloaded && { LONGSTACK_FRAMES: '7' }) }
  const preload = isPreloaded ? ['-r', path.join(root, 'lib', 'register.js')] : []
  // by attach/state.js; and V8's young generation, which grows with the load, is bounded
  const needed = ['--expose-gc', '--expose-internals', '--no-warnings', '--max-semi-space-size=2']
  const flags = ['--inspect-port=0', ...needed, ...preload]
  const child = spawn(node, [...flags, path.join(__dirname, 'attach', 'server.js')],
    { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let output = ''
  child.stdout?.on('data', (text) => { output += text })
  child.stderr?.on('data', (text) => { output += text })
  /** @type {Map<number, { resolve: (value: any) => void, reject: (error: Error) => void }>} */
  const asked = new Map()
  let lastId = 0
  const ended = new Promise((resolve) => child.on('close', (code, signal) => {
    const text = `the process ended: ${signal ?? code} ${output}`
    for (const { reject } of asked.values()) reject(new Error(text))
    resolve(undefined)
  }))
  const port = await new Promise((resolve, reject) => {
    setTimeout(reject, START_MS, new Error('the process does not start')).unref()
    child.on('close', () => reject(new Error(output)))
    child.on('message', (/** @type {any} */ { id, value, ports }) => {
      if (ports !== undefined) return resolve(ports.main)
      asked.get(id)?.resolve(value)
      asked.delete(id)
    })
  })
  return {
    pid: Number(child.pid),
    port,
    /** What it printed, without what Node says of its inspector. */
    output: () => output.replace(/^(Debugger|For help).*\n/gm, '').trim(),
    /** @param {string} question @param {any} [argument] @returns {Promise<any>} */
    ask (question, argument) {
      const id = ++lastId
      child.send({ id, question, argument })
      return new Promise((resolve, reject) => { asked.set(id, { resolve, reject }) })
    },
    async close () {
      child.kill('SIGKILL')
      await ended
    }
  }
}

/** Returns the least squares slope per cycle. @param {Array<[cycle: number, bytes: number]>} points */
function slope (points) {
  const meanX = points.reduce((sum, [x]) => sum + x, 0) / points.length
  const meanY = points.reduce((sum, [, y]) => sum + y, 0) / points.length
  const over = points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0)
  return over / points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0)
}

/** @param {Array<{ cycle: number, sample: Sample }>} samples @param {number} count */
function slopes (samples, count) {
  const judged = samples.filter(({ cycle }) => cycle >= count * WARM_UP)
  /** @type {Record<string, number>} bytes per cycle */
  const found = {}
  if (judged.length < 3) return found
  for (const thread of /** @type {const} */ (['main', 'worker'])) {
    for (const figure of /** @type {const} */ (['heapUsed', 'external', 'arrayBuffers', 'rss'])) {
      if (thread === 'worker' && figure === 'rss') continue
      /** @type {Array<[number, number]>} */
      const points = judged.map(({ cycle, sample }) => [cycle, sample[thread][figure]])
      found[`${thread} ${figure}`] = Math.round(slope(points))
    }
  }
  return found
}

/**
 * Waits until the process is as it was.
 * @param {Awaited<ReturnType<typeof startService>>} service
 * @param {number} ms
 * @returns {Promise<string[]>} what stays different
 */
async function lastingChanges (service, ms) {
  for (const end = performance.now() + ms; ;) {
    await service.ask('rest')
    const changes = await service.ask('changes')
    if (changes.length === 0 || performance.now() > end) return changes
  }
}

/** @param {string} file @returns {string[]} */
function brokenLines (file) {
  if (!fs.existsSync(file)) return []
  return fs.readFileSync(file, 'utf8').split('\n').slice(0, -1).filter((line) => {
    try {
      const { traceId, longstack } = JSON.parse(line)
      return typeof traceId !== 'string' && longstack === undefined
    } catch {
      return true
    }
  })
}

/** @param {Settings} settings */
async function attachOften (settings) {
  const { seed, count = Infinity, seconds = Infinity, node = process.execPath, log = () => {} } = settings
  const { isControl = false, isPreloaded = false, isAlone = false, only } = settings
  const { commandEvery = COMMAND_EVERY } = settings
  const random = createRandom(seed)
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-attach-'))
  const spans = path.join(folder, 'spans.ndjson')
  const service = await startService(node, isPreloaded)
  const load = new Load(service.port, CONNECTIONS, random)
  /** @type {string[]} */
  const findings = []
  /** @type {Array<{ cycle: number, sample: Sample }>} */
  const samples = []
  /** @type {number[]} */
  const [times, delays] = [[], []]
  const end = performance.now() + seconds * 1000
  let done = 0
  try {
    await load.learn()
    load.start()
    await new Promise((resolve) => setTimeout(resolve, 500))
    await load.pause()
    await service.ask('rest')
    await service.ask('remember')
    const warmUp = await lastingChanges(service, 5000)
    if (warmUp.length > 0) await service.ask('remember')
    for (; done < count && performance.now() < end && findings.length < MAX_FINDINGS; done++) {
      const isCommand = only === undefined
        ? done % commandEvery === commandEvery - 1
        : only in commandCycles
      const name = isControl
        ? 'control'
        : only ?? (isCommand
          ? commandNames[Math.floor(done / commandEvery) % commandNames.length]
          : names[done < names.length ? done : Math.floor(random() * names.length)])
      const found = (/** @type {string} */ text) => {
        findings.push(`cycle ${done}, ${name}: ${text}`)
        log(findings.at(-1))
      }
      const subject = { pid: service.pid, spans, random, ask: service.ask, found }
      if ((isPreloaded || isAlone) && name.startsWith('program')) continue
      await service.ask('delay')
      load.start()
      const start = performance.now()
      await (isControl ? control : isCommand ? commandCycles[name] : cycles[name])(subject)
      times.push(performance.now() - start)
      delays.push(await service.ask('delay'))
      if (!isPreloaded) {
        await waitFor(() => service.ask('isOff'), subject, 'the end of tracing')
      }
      await load.pause()
      for (const change of (await lastingChanges(service, RESTORED_MS)).slice(0, 20)) found(change)
      for (const text of load.findings.splice(0)) found(text)
      if (done % MEMORY_EVERY === MEMORY_EVERY - 1) {
        samples.push({ cycle: done, sample: await service.ask('memory') })
        if (done % 100 === 99) {
          log(`${done + 1} cycles, ${load.requests} requests, ${JSON.stringify(samples.at(-1)?.sample)}`)
        }
      }
    }
    for (const line of brokenLines(spans).slice(0, 3)) findings.push(`broken line: ${line}`)
    if (service.output() !== '') findings.push(`the process printed: ${service.output()}`)
  } catch (error) {
    findings.push(`cycle ${done}: ${/** @type {Error} */ (error).stack}`)
  } finally {
    load.close()
    await service.close()
    fs.rmSync(folder, { recursive: true, force: true })
  }
  const last = samples.at(-1)?.sample
  return { findings, done, requests: load.requests, times, delays, slopes: slopes(samples, done), last }
}

/** @param {Settings} settings @returns {Promise<number>} */
async function run (settings) {
  const { findings, done } = await attachOften(settings)
  if (findings.length > 0) throw new Error(findings.join('\n'))
  return done
}

/** @param {number[]} values @param {number} share */
function quantile (values, share) {
  return Math.round([...values].sort((a, b) => a - b)[Math.floor(values.length * share)])
}

async function main () {
  const string = /** @type {const} */ ({ type: 'string' })
  const boolean = /** @type {const} */ ({ type: 'boolean' })
  const options = {
    count: string,
    seed: string,
    node: string,
    only: string,
    control: boolean,
    preload: boolean,
    alone: boolean
  }
  const { values } = parseArgs({ options })
  const { count = '100', seed = String(Date.now() % 1e6), node, only } = values
  const { control: isControl, preload: isPreloaded, alone: isAlone } = values
  const flags = { node, only, isControl, isPreloaded, isAlone }
  const settings = { ...flags, count: Number(count), seed: Number(seed) }
  const result = await attachOften({ ...settings, log: console.log })
  for (const finding of result.findings) console.log(finding)
  const { times, delays, ...others } = result
  console.log(JSON.stringify({
    ...settings,
    ...others,
    findings: result.findings.length,
    cycleMs: [quantile(times, 0.5), quantile(times, 0.95)],
    maxDelayMs: [quantile(delays, 0.5), quantile(delays, 0.95), Math.round(Math.max(...delays))],
    firstDelayMs: Math.round(delays[0])
  }))
  process.exitCode = result.findings.length > 0 ? 1 : 0
}

module.exports = { name: 'attach', run, attachOften }

if (require.main === module) main()
