'use strict'

// Every kind of Node object looks the same as without longstack: when the program gets it, after queries
// about it, and when it is closed (test/fixtures/transparency/objects.js).

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { longstack } = require('../helpers/live')
const { register, root } = require('../helpers/run')

const fixtures = path.join(root, 'test', 'fixtures', 'transparency')
const nothing = path.join(fixtures, 'waiting.js') // preloaded in place of longstack
const ASK = path.join(fixtures, 'ask.js')
const ownVariables = /^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR)/
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ownVariables.test(name)))

/**
 * What may differ, and why. Each takes a line, and returns it as it would be bare.
 * @type {Record<string, { why: string, clean: (line: string) => string | undefined }>}
 */
const allowed = {
  monitor: {
    why: 'uncaught errors are noted by this listener, which changes nothing (lib/attribution/uncaught.js)',
    clean: (line) => line.replace(', uncaughtExceptionMonitor 1', '')
  },
  tracer: {
    why: 'all copies of longstack and all realms find the one tracer of a thread there (lib/shared.js)',
    clean: (line) => line.replace(/, Symbol\(longstack\.tracer\.\d\) object 010/, '')
  },
  port: {
    why: 'the messages of a worker are counted, to know their senders (lib/passing/thread-messages.js)',
    clean: (line) => line.replace(/(, )?Symbol\(kHandle\) get\/0 - 01NaN/, '')
  },
  descriptors: {
    why: 'functions of C++ have both properties, as null, up to V8 13; they cannot be removed (native/openers.cc)',
    clean: (line) => line.replace(/( module fs\.(?:open|close)(?:Sync)?: .*), arguments object 000, caller object 000/, '$1')
  },
  exit: {
    why: 'what is written with the end of the process needs its event: spans, blocking callbacks, sockets of threads',
    clean: (line) => line === 'newListener exit' ? undefined : line.replace(/\bexit [12], /, '')
  },
  signal: {
    why: 'the signal was asked for',
    clean: (line) => line.replace(/\bSIGUSR2 1, /, '')
  },
  intercept: {
    why: 'bytes go through JavaScript, as they do once a program listens to `data` of the socket: the ticks between ' +
      'the head and the body of a request run later',
    clean: (line) => line.replace(/ (_consuming|_dumped|Symbol\(shapeMode\))=(true|false),/g, '')
  },
  headers: {
    why: 'requests are sent with one more header, which is added where Node writes them',
    clean: (line) => /headers/i.test(objectOf(line)) ? undefined : line.replace(', _storeHeader new _storeHeader/2 011', '')
  },
  profile: {
    why: 'trace.profile() ends with the program',
    clean: (line) => /^(new|remove)Listener beforeExit$/.test(line) ? undefined : line
  },
  spans: {
    why: 'spans are written to the same stream; a socket is opened then, so that it does not block (lib/sinks/output-file.js)',
    clean (line) {
      if (/^\{"(?:traceId|longstack)"/.test(line)) return undefined
      return line.replace(/^(start, handles: )Socket.*$/, '$1').replace('start, resources: PipeWrap', 'start, resources: ')
    }
  }
}
const always = ['monitor', 'tracer', 'port', 'descriptors']

/**
 * @param {string} directory
 * @param {Record<string, string>} [env] undefined: without longstack
 * @param {() => Promise<void>} [ask] while all is open
 * @returns {Promise<string[]>} what the program has seen, sorted
 */
async function run (directory, env, ask = async () => {}) {
  const preload = env === undefined ? nothing : register
  const flags = ['--expose-internals', '--no-warnings', '-r', preload]
  const child = spawn(process.execPath, [...flags, path.join(fixtures, 'objects.js')], {
    env: { ...inherited, ...env, DIRECTORY: directory, HOLD: 'on' },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe']
  })
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text) => { stdout += text })
  child.stderr?.setEncoding('utf8').on('data', (text) => { stderr += text })
  const release = /** @type {import('node:net').Socket} */ (child.stdio[3])
  child.stdout?.on('data', function held () {
    if (!/^pid \d+$/m.test(stdout)) return
    child.stdout?.off('data', held)
    ask().finally(() => release.end('go on'))
  })
  const code = await new Promise((resolve) => child.on('close', resolve))
  if (code !== 0) throw new Error(`${stdout.split('\n').slice(-3)}\n${stderr}`)
  return stdout.replace(/^pid \d+$/m, '').split('\n').sort()
}

/** @param {import('ava').ExecutionContext} t */
function temporary (t) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-objects-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** @param {string[]} lines @param {string[]} names of what is allowed */
function clean (lines, names) {
  return lines.flatMap((line) => {
    /** @type {string | undefined} */
    let cleaned = line
    for (const name of names) cleaned = cleaned === undefined ? undefined : allowed[name].clean(cleaned)
    return cleaned ?? []
  }).sort()
}

/** Returns what another list lacks. @param {string[]} list @param {string[]} other */
function without (list, other) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const item of other) counts.set(item, (counts.get(item) ?? 0) + 1)
  return list.filter((item) => {
    const count = counts.get(item) ?? 0
    counts.set(item, count - 1)
    return count <= 0
  })
}

/** @param {string} line @returns {string} */
const objectOf = (line) => line.split(': ', 1)[0]

/**
 * Returns what is on one side alone, by object.
 * @param {string[]} bare
 * @param {string[]} traced
 */
function difference (bare, traced) {
  const sides = [without(bare, traced), without(traced, bare)]
  const names = [...new Set(sides.flat().map(objectOf))]
  return names.map((name) => {
    const [gone, added] = sides.map((lines) => {
      return lines.filter((line) => objectOf(line) === name).flatMap((line) => line.split(', '))
    })
    const [before, after] = [without(gone, added), without(added, gone)].map((list) => list.join(', '))
    return `${name} | bare: ${before} | here: ${after}`
  })
}

/** @type {string[]} */
let bare = []

test.serial.before(async (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-objects-'))
  bare = await run(directory)
  const again = await run(directory)
  fs.rmSync(directory, { recursive: true, force: true })
  t.deepEqual(difference(bare, again), [])
  t.true(bare.length > 7000, String(bare.length))
})

/** @param {string} directory @returns {Record<string, string>} */
const spansIn = (directory) => ({ LONGSTACK_SPANS: path.join(directory, 'spans.jsonl') })

/** @type {Array<[string, (directory: string) => Record<string, string>, string[]]>} */
const modes = [
  ['as it is', () => ({}), []],
  ['spans to a file', spansIn, ['exit']],
  ['spans to stdout', () => ({ LONGSTACK_SPANS: '-' }), ['exit', 'spans']],
  ['spans that propagate', (directory) => ({ ...spansIn(directory), LONGSTACK_PROPAGATE: 'on' }), ['exit', 'headers']],
  ['blocked', () => ({ LONGSTACK_BLOCKED: '5000' }), ['exit']],
  ['internals', () => ({ LONGSTACK_INTERNALS: 'on' }), []],
  ['without errors', () => ({ LONGSTACK_ERRORS: 'off' }), []],
  ['capture by JavaScript', () => ({ LONGSTACK_CAPTURE: 'js' }), []],
  ['a filter', () => ({ LONGSTACK: 'TCP,PROMISE' }), []],
  ['a signal', () => ({ LONGSTACK_SIGNAL: 'SIGUSR2' }), ['signal']],
  ['methods', () => ({ ASK }), ['exit', 'profile']],
  ['methods, with interceptors', () => ({ ASK, INTERCEPT: 'on' }), ['exit', 'intercept', 'profile']],
  ['methods, with spans', (directory) => ({ ASK, ...spansIn(directory) }), ['exit', 'profile']]
]

for (const [name, env, names] of modes) {
  test.serial(name, async (t) => {
    const directory = temporary(t)
    const lines = await run(directory, env(directory))
    const cleaned = [bare, lines].map((list) => clean(list, [...always, ...names]))
    t.deepEqual(difference(cleaned[0], cleaned[1]), [])
  })
}

test.serial('queried by commands', async (t) => {
  const directory = temporary(t)
  const socket = path.join(directory, 'socket')
  const lines = await run(directory, { LONGSTACK_SOCKET: socket }, async () => {
    for (const args of [['why', socket, '--json'], ['top', socket, '--once'], ['diff', socket, '--seconds', '1']]) {
      const { code, stdout, stderr } = await longstack(...args)
      t.is(code, 0, `${args}: ${stdout}${stderr}`)
    }
  })
  t.deepEqual(difference(bare, clean(lines, [...always, 'exit'])), [])
})
