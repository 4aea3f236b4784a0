'use strict'

// trace.doctor(): the active settings with their reasons, and obstacles. Each situation runs in a process of
// its own.

const path = require('node:path')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { isUnsafeVersion } = require('../../lib/warnings')
const { program, root } = require('../helpers/run')
const { major } = require('../helpers/stories')

const home = JSON.stringify(root)
const ask = `const trace = require(${home}); const tell = () => console.log(JSON.stringify(trace.doctor()));`

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string} source in which `tell` prints the diagnosis
 * @param {Parameters<typeof program>[1]} [options]
 * @returns {Promise<import('../../index').Diagnosis>} the last one told
 */
async function diagnosis (t, source, options) {
  const { stdout, stderr, code } = await program(ask + source, options)
  t.is(stderr, '')
  t.is(code, 0)
  return JSON.parse(stdout.trim().split('\n').at(-1))
}

test('doctor() reports a healthy process', async (t) => {
  const found = await diagnosis(t, 'tell()', { env: { LONGSTACK_CAPTURE: 'auto' } })
  const native = loadBinding().failure === undefined
  t.like(found, {
    longstack: require('../../package.json').version,
    copies: [`${require('../../package.json').version} in ${root}`],
    node: process.versions.node,
    enabled: true,
    engine: native ? 'native' : 'js',
    filter: ['*'],
    promiseHooks: true,
    destroyHook: false,
    formatter: 'longstack around Node',
    sourceMaps: [],
    stackTraceLimit: 10,
    frozenIntrinsics: false,
    dropped: 0
  })
  t.is(found.otherHooks, undefined, 'its own hook hides others')
  t.is(found.forbidden, undefined)
  t.is(found.fault, undefined)
  t.true(found.pressure >= 0 && found.pressure < 0.25, String(found.pressure))
  t.is(found.safe, !isUnsafeVersion(process.versions.node))
  if (native) t.is(path.dirname(path.dirname(found.binary)), path.join(root, 'native', 'prebuilds'))
  t.is(found.notes.length, (native ? 0 : 1) + (found.safe ? 0 : 1), 'nothing to worry about but this Node')
})

test('text and data agree', async (t) => {
  const { text, notes, engine, engineWhy, node } = await diagnosis(t, 'Error.stackTraceLimit = Infinity; tell()', { env: { LONGSTACK: 'TCP,DNS' } })
  const lines = text.split('\n')
  t.regex(lines[0], new RegExp(`^longstack +\\d+\\.\\d+\\.\\d+, Node ${node.replaceAll('.', '\\.')}, ${process.platform}`))
  t.regex(text, /^tracing +on, filter TCP,DNS$/m)
  t.true(text.includes(`${engine} (${engineWhy})`))
  t.deepEqual(lines.filter((line) => line.startsWith('- ')), notes.map((note) => `- ${note}`))
  t.true(notes.some((note) => /Infinity/.test(note)))
})

test('doctor() reports that tracing is off', async (t) => {
  const found = await diagnosis(t, 'trace.disable(); tell()', { preload: false })
  t.like(found, { enabled: false, promiseHooks: false, otherHooks: false, formatter: 'Node' })
  t.regex(found.notes.join('\n'), /Tracing is off\. Call trace\.enable\(\)/)
})

test('doctor() names the engine and the reason', async (t) => {
  const asked = await diagnosis(t, 'tell()', { env: { LONGSTACK_CAPTURE: 'js' } })
  t.like(asked, { engine: 'js', engineWhy: 'requested', engineCode: 'ASKED' })
  t.notRegex(asked.text, /not in use/)
  const forbidden = await diagnosis(t, 'tell()', { args: ['--no-addons'], env: { LONGSTACK_CAPTURE: 'auto' } })
  t.is(forbidden.engine, 'js')
  t.regex(forbidden.notes[0], /^The native engine is not in use: .+\.$/)
  t.deepEqual(forbidden.problems[0], { code: 'ENGINE_JS', message: forbidden.notes[0] })
})

test('doctor() reports other hooks as far as they can be seen', async (t) => {
  const { otherHooks, destroyHook } = await diagnosis(t, "require('node:async_hooks').createHook({ init () {} }).enable(); tell()", { preload: false })
  t.deepEqual([otherHooks, destroyHook], [true, false])
  const found = await diagnosis(t, "require('node:async_hooks').createHook({ destroy () {} }).enable(); tell()")
  t.true(found.destroyHook)
  t.regex(found.notes.join('\n'), /destroy hook of another library makes every promise expensive/)
})

const support = JSON.stringify(require.resolve('source-map-support'))
const tsNode = JSON.stringify(require.resolve('ts-node'))

/**
 * @type {Record<string, { source: string, args?: string[], formatter: string, sourceMaps?: string[], note?:
 *   RegExp }>}
 */
const formatters = {
  'source-map-support, before': {
    source: `trace.disable(); require(${support}).install(); trace.enable(); tell()`,
    formatter: 'longstack around source-map-support',
    sourceMaps: ['source-map-support']
  },
  'source-map-support, after': {
    source: `require(${support}).install(); setImmediate(tell)`,
    formatter: 'longstack around source-map-support',
    sourceMaps: ['source-map-support']
  },
  'source-map-support, just now': {
    source: `require(${support}).install(); tell()`,
    formatter: 'source-map-support',
    sourceMaps: ['source-map-support'],
    note: /was set by source-map-support: longstack wraps it when the next callback begins/
  },
  'ts-node': {
    source: `require(${tsNode}).register({ transpileOnly: true }); setImmediate(tell)`,
    formatter: 'longstack around source-map-support',
    sourceMaps: ['ts-node']
  },
  "Node's own maps": { source: 'tell()', args: ['--enable-source-maps'], formatter: 'longstack around Node', sourceMaps: ['Node'] },
  'a function of the program': {
    source: 'Error.prepareStackTrace = function mine (error, sites) { return sites }; setImmediate(tell)',
    formatter: 'longstack around a function called mine'
  },
  'an arrow function': { source: 'Error.prepareStackTrace = [() => 1][0]; tell()', formatter: 'a function without a name', note: /was set by a function without a name/ },
  'none, any more': { source: 'delete Error.prepareStackTrace; tell()', formatter: 'none', note: /was set by none|wraps it/ },
  'a constant': {
    source: "trace.disable(); Object.defineProperty(Error, 'prepareStackTrace', { value: function fixed () {}, writable: false }); trace.on('warning', () => {}); trace.enable(); tell()",
    formatter: 'a function called fixed',
    note: /cannot be set here/
  }
}

for (const [name, { source, args, formatter, sourceMaps = [], note }] of Object.entries(formatters)) {
  test(`doctor() names the formatter: ${name}`, async (t) => {
    const found = await diagnosis(t, source, { args })
    t.is(found.formatter, formatter)
    t.deepEqual(found.sourceMaps, sourceMaps)
    const notes = found.notes.filter((one) => one.includes('prepareStackTrace'))
    t.is(notes.length, note === undefined ? 0 : 1)
    if (note !== undefined) t.regex(notes[0], note)
  })
}

/** @type {Record<string, RegExp | undefined>} */
const limits = {
  'Error.stackTraceLimit = 50': undefined,
  'Error.stackTraceLimit = Infinity': /is Infinity: creating any error is expensive/,
  'Error.stackTraceLimit = 0': /is 0: errors have neither frames nor hops/,
  'delete Error.stackTraceLimit': /is undefined: errors have neither frames nor hops/,
  'Error.stackTraceLimit = "many"': /is many: errors have neither frames nor hops/,
  'Object.defineProperty(Error, "stackTraceLimit", { get: () => 10 })': /is undefined: errors have neither frames nor hops/
}

for (const [source, note] of Object.entries(limits)) {
  test(`doctor() names what set the limit: ${source}`, async (t) => {
    const notes = (await diagnosis(t, `${source}; tell()`)).notes.filter((one) => one.includes('stackTraceLimit'))
    t.is(notes.length, note === undefined ? 0 : 1)
    if (note !== undefined) t.regex(notes[0], note)
  })
}

test('doctor() reports frozen intrinsics', async (t) => {
  const args = ['--frozen-intrinsics', '--no-warnings']
  const early = await diagnosis(t, 'tell()', { args })
  t.like(early, { frozenIntrinsics: true, formatter: 'longstack around Node' }, 'a preload comes before they are frozen')
  t.notRegex(early.text, /cannot be set/)
  const late = await diagnosis(t, "trace.on('warning', () => {}); trace.enable(); tell()", { args, preload: false })
  t.like(late, { frozenIntrinsics: true, formatter: 'Node' })
  t.regex(late.text, /prepareStackTrace cannot be set here/)
})

test('doctor() reports the permission model', async (t) => {
  const found = await diagnosis(t, 'tell()', { args: [major === 20 ? '--experimental-permission' : '--permission', '--allow-fs-read=*', '--no-warnings'] })
  t.true(['addon', 'child', 'fs.write', 'worker'].every((scope) => found.forbidden.includes(scope)))
  t.false(found.forbidden.includes('fs.read'))
  t.is(found.forbidden.includes('net'), process.allowedNodeEnvironmentFlags.has('--allow-net'))
  t.true(found.notes.some((note) => note.startsWith("Node's permission model denies addon,")))
})

test('doctor() reports an exhausted budget', async (t) => {
  const found = await diagnosis(t, `
    const kept = []
    setTimeout(() => {
      for (let i = 0; i < 50_000; i++) kept.push(new Promise(() => {}))
      setImmediate(tell)
    }, 1)`, { env: { LONGSTACK_BUDGET: '1048576' } })
  t.true(found.pressure > 0.5)
  t.true(found.notes.some((note) => /More than half of the budget is used/.test(note)))
})

test('doctor() reports unsafe versions of Node', (t) => {
  for (const version of ['18.20.8', '20.19.6', '21.7.3', '22.21.1', '23.11.1', '24.12.0', '25.2.1']) t.true(isUnsafeVersion(version), version)
  for (const version of ['20.20.0', '22.22.0', '24.13.0', '25.3.0', '26.0.0']) t.false(isUnsafeVersion(version), version)
})

test('doctor() changes nothing', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${home})
    const seen = []
    trace.hook({ init: ({ type }) => seen.push(type) })
    const before = [Error.prepareStackTrace, Error.stackTraceLimit]
    const { doctor } = trace // needs no this
    console.log(typeof doctor().text, seen.length, before[0] === Error.prepareStackTrace, before[1] === Error.stackTraceLimit)`)
  t.is(stderr, '')
  t.is(stdout, 'string 0 true true\n')
})
