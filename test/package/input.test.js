'use strict'

// Every wrong input yields a TypeError with a stable code and a helpful sentence; in an environment variable
// it yields one line, and the program runs as usual.

const test = require('ava')
const trace = require('../..')
const { node, program, register, root } = require('../helpers/run')

/**
 * What is called, the code, what the sentence says.
 * @type {Array<[string, () => unknown, string, RegExp]>}
 */
const mistakes = [
  ['an unknown subsystem', () => trace.enable(['TPC']), 'UNKNOWN_SUBSYSTEM',
    /Unknown subsystem "TPC"\. Did you mean "TCP"\?/],
  ['an excluded unknown subsystem', () => trace.enable(['*', '-PROMSIE']), 'UNKNOWN_SUBSYSTEM',
    /"PROMSIE"\. Did you mean "PROMISE"\?/],
  ['a subsystem in small letters', () => trace.enable(['tcp']), 'UNKNOWN_SUBSYSTEM',
    /"tcp"\. Did you mean "TCP"\?/],
  ['a provider type misspelt', () => trace.enable(['TCPCONECTWRAP']), 'UNKNOWN_SUBSYSTEM',
    /Did you mean "TCPCONNECTWRAP"\?/],
  ['a word like nothing known', () => trace.enable(['XYZZYXYZZY']), 'UNKNOWN_SUBSYSTEM',
    /"XYZZYXYZZY"\. A filter lists subsystems/],
  ['a number in a filter', () => trace.enable([42]), 'INVALID_FILTER', /array of names.*Received 42/],
  ['null in a filter', () => trace.enable([null]), 'INVALID_FILTER', /Received null/],
  ['an empty name', () => trace.enable(['']), 'INVALID_FILTER', /Received ""/],
  ['an empty exclusion', () => trace.enable(['-']), 'INVALID_FILTER', /Received "-"/],
  ['an empty user type', () => trace.enable(['type:']), 'INVALID_FILTER', /Received "type:"/],
  ['a filter that is a text, misspelt', () => trace.enable({ filter: 'TCP,TPC' }), 'UNKNOWN_SUBSYSTEM', /"TPC"\. Did you mean "TCP"\?/],
  ['a filter that is an empty text', () => trace.enable({ filter: ' ' }), 'INVALID_FILTER', /\['TCP', 'PIPE'\].*Received " "/],
  ['a filter that is a number', () => trace.enable({ filter: 7 }), 'INVALID_FILTER', /Received 7/],
  ['a filter that is a Set', () => trace.enable({ filter: new Set(['TCP']) }), 'INVALID_FILTER',
    /Received an object/],

  ['a text for options', () => trace.enable('TCP'), 'INVALID_OPTIONS',
    /an array of filter names.*Received "TCP"/],
  ['a number for options', () => trace.enable(42), 'INVALID_OPTIONS', /Received 42/],
  ['null for options', () => trace.enable(null), 'INVALID_OPTIONS', /Received null/],
  ['a function for options', () => trace.enable(() => {}), 'INVALID_OPTIONS', /Received a function/],
  ['a Map for options', () => trace.enable(new Map([['frames', 3]])), 'INVALID_OPTIONS',
    /Received an object/],
  ['a promise for options', () => trace.enable(Promise.resolve()), 'INVALID_OPTIONS', /Received an object/],
  ['an unknown option', () => trace.enable({ frame: 3 }), 'UNKNOWN_OPTION',
    /"frame"\. Did you mean "frames"\?/],
  ['an option like nothing known', () => trace.enable({ colour: 'red' }), 'UNKNOWN_OPTION',
    /Unknown option "colour"\.$/],
  ['an option named like a method of objects', () => trace.enable({ toString: 1 }), 'UNKNOWN_OPTION',
    /"toString"/],
  ['no threshold', () => trace.enable({ blocked: 0 }), 'INVALID_OPTION',
    /"blocked" must be an integer from 1 to 3600000 \(ms\)\. Received 0\./],

  ...[-1, 0, 1.5, NaN, Infinity, 1e9, '10', 10n, null, true, [], {}].map((value) => /** @type {any} */ (
    [`frames: ${typeof value} ${String(value)}`, () => trace.enable({ frames: value }), 'INVALID_OPTION',
      /^Option "frames" must be an integer from 1 to 200\. Received /]
  )),
  ['depth: -5', () => trace.enable({ depth: -5 }), 'INVALID_OPTION',
    /"depth" must be an integer from 1 to 1000\. Received -5\./],
  ['depth: 1e300', () => trace.enable({ depth: 1e300 }), 'INVALID_OPTION', /Received 1e\+300/],
  ['budget: 3', () => trace.enable({ budget: 3 }), 'INVALID_OPTION',
    /"budget" must be an integer from 1048576 to 1099511627776 \(bytes\)/],
  ['capture: c', () => trace.enable({ capture: 'c' }), 'INVALID_OPTION',
    /"capture" must be "auto", "native" or "js"\. Received "c"/],
  ['internals: 1', () => trace.enable({ internals: 1 }), 'INVALID_OPTION',
    /"internals" must be true or false\. Received 1/],
  ['errors: 0', () => trace.enable({ errors: 0 }), 'INVALID_OPTION',
    /"errors" must be true, false or "print"\. Received 0/],
  ['hide: 3', () => trace.enable({ hide: 3 }), 'INVALID_OPTION',
    /"hide" must be "node_modules", a regular expression.*Received 3/],
  ['hide: another text', () => trace.enable({ hide: 'express' }), 'INVALID_OPTION', /Received "express"/],
  ['signal: SIGKILL', () => trace.enable({ signal: 'SIGKILL' }), 'INVALID_OPTION',
    /"signal" must be the name of a signal.*Received "SIGKILL"/],
  ['signal: SIGUSR1, the inspector has it', () => trace.enable({ signal: 'SIGUSR1' }), 'INVALID_OPTION',
    /Node does not use.*Received "SIGUSR1"/],
  ['signal: sigusr2', () => trace.enable({ signal: 'sigusr2' }), 'INVALID_OPTION', /Received "sigusr2"/],
  ['signal: 12', () => trace.enable({ signal: 12 }), 'INVALID_OPTION', /Received 12/],

  ['why(42)', () => trace.why(42), 'INVALID_TARGET', /backed by an async resource.*Received 42/],
  ['why()', () => trace.why(), 'INVALID_TARGET', /Received undefined/],
  ['why(null)', () => trace.why(null), 'INVALID_TARGET', /Received null/],
  ['why of a text', () => trace.why('socket'), 'INVALID_TARGET', /Received "socket"/],
  ['why of a symbol', () => trace.why(Symbol('s')), 'INVALID_TARGET', /Received a symbol/],
  ['why of a function', () => trace.why(() => {}), 'INVALID_TARGET', /Received a function/],
  ['chain(42)', () => trace.chain(42), 'INVALID_TARGET', /Received 42/],
  ['chain(null)', () => trace.chain(null), 'INVALID_TARGET', /Received null/],
  ['stack of a text', () => trace.stack('x'), 'INVALID_TARGET', /Received "x"/],
  ['handles of a text', () => trace.handles('TCP'), 'INVALID_FILTER', /Received "TCP"/],
  ['handles of a number', () => trace.handles(42), 'INVALID_FILTER', /Received 42/],
  ['handles of an unknown subsystem', () => trace.handles(['TPC']), 'UNKNOWN_SUBSYSTEM',
    /Did you mean "TCP"\?/],

  ['hook()', () => trace.hook(), 'INVALID_HOOK', /init, before or after.*Received undefined/],
  ['hook(42)', () => trace.hook(42), 'INVALID_HOOK', /Received 42/],
  ['hook of nothing', () => trace.hook({}), 'INVALID_HOOK', /init, before or after/],
  ['a hook that is no function', () => trace.hook({ init: 1 }), 'INVALID_HANDLER',
    /The hook's init must be a function\. Received 1/],
  ['a hook of which one is no function', () => trace.hook({ init () {}, after: 'x' }), 'INVALID_HANDLER',
    /The hook's after must be a function\. Received "x"/],
  ['onError()', () => trace.onError(), 'INVALID_HANDLER',
    /The handler of trace\.onError must be a function\. Received undefined/],
  ['onError without a handler', () => trace.onError(['TCP']), 'INVALID_HANDLER', /Received undefined/],
  ['onError with a text for a handler', () => trace.onError(['TCP'], 'log'), 'INVALID_HANDLER',
    /Received "log"/],
  ['onError with an unknown subsystem', () => trace.onError(['TPC'], () => {}), 'UNKNOWN_SUBSYSTEM',
    /Did you mean "TCP"\?/],
  ['onError with a text for a filter', () => trace.onError('TCP', () => {}), 'INVALID_FILTER',
    /Received "TCP"/],
  ['an unknown event', () => trace.on('wraning', () => {}), 'UNKNOWN_EVENT',
    /"wraning"\. Did you mean "warning"\?/],
  ['an event that is no text', () => trace.on(Object.create(null), () => {}), 'UNKNOWN_EVENT',
    /Unknown event an object\./],
  ['a listener that is no function', () => trace.on('warning', 42), 'INVALID_HANDLER',
    /The listener of trace\.on must be a function\. Received 42/],
  ['bind of what is no function', () => trace.bind({}), 'INVALID_HANDLER',
    /The argument of trace\.bind must be a function\. Received an object/]
]

for (const [name, run, code, sentence] of mistakes) {
  test(`the API rejects wrong input: ${name}`, (t) => {
    const error = t.throws(run, { instanceOf: TypeError })
    t.is(/** @type {any} */ (error).code, `LONGSTACK_ERR_${code}`)
    t.regex(error.message, sentence)
    t.regex(error.message, /^[A-Za-z].*[.?]$/, 'one sentence, in one line')
    t.false(trace.enabled)
  })
}

test('a mistake changes no setting', async (t) => {
  const { stdout, stderr } = await program(`
    const trace = require(${JSON.stringify(root)})
    trace.enable({ filter: ['TIMER'], depth: 1 })
    for (const wrong of [['TPC'], { frames: -1 }, { filter: ['*'], depth: 9, frames: 'x' }, 42]) {
      try { trace.enable(wrong) } catch (error) { console.log(error.code) }
    }
    const print = () => console.log(trace.enabled, trace.chain().map((hop) => hop.type))
    setTimeout(() => setImmediate(() => setTimeout(print, 1)), 1)`)
  t.is(stderr, '')
  t.deepEqual(stdout.trim().split('\n'), [
    'LONGSTACK_ERR_UNKNOWN_SUBSYSTEM', 'LONGSTACK_ERR_INVALID_OPTION', 'LONGSTACK_ERR_INVALID_OPTION',
    'LONGSTACK_ERR_INVALID_OPTIONS', "true [ 'Timeout' ]"
  ])
})

/** Variable, value, what the line says. @type {Array<[string, string, RegExp]>} */
const variables = [
  ['LONGSTACK', 'TPC', /Unknown subsystem "TPC"\. Did you mean "TCP"\?/],
  ['LONGSTACK', 'TCP,-FSS', /Unknown subsystem "FSS"\. Did you mean "FS"\?/],
  ['LONGSTACK', ' , ,-', /array of names/],
  ['LONGSTACK_FRAMES', '-3',
    /^longstack: LONGSTACK_FRAMES: Option "frames" must be an integer from 1 to 200\. Received "-3"\./],
  ['LONGSTACK_FRAMES', 'many', /Received "many"/],
  ['LONGSTACK_FRAMES', '1e9', /Received "1e9"/],
  ['LONGSTACK_FRAMES', '99999999999999999999', /Received 100000000000000000000/],
  ['LONGSTACK_DEPTH', '0', /an integer from 1 to 1000\. Received 0/],
  ['LONGSTACK_CAPTURE', 'nativ', /"auto", "native" or "js"\. Received "nativ"/],
  ['LONGSTACK_INTERNALS', 'perhaps', /true or false\. Received "perhaps"/],
  ['LONGSTACK_ERRORS', 'none', /true, false or "print"\. Received "none"/],
  ['LONGSTACK_HIDE', '(', /regular expression.*Received "\("/],
  ['LONGSTACK_SIGNAL', 'SIGKILL', /name of a signal.*Received "SIGKILL"/],
  ['LONGSTACK_SIGNAL', 'USR2', /for example "SIGUSR2"\. Received "USR2"/],
  ['LONGSTACK_BUDGET', '64MB', /an integer.*\(bytes\)\. Received "64MB"/],
  ['LONGSTACK_FRAME', '3',
    /Unknown environment variable "LONGSTACK_FRAME"\. Did you mean "LONGSTACK_FRAMES"\?/],
  ['LONGSTACK_XYZZYXYZZY', '3', /Unknown environment variable "LONGSTACK_XYZZYXYZZY"\.$/],
  ['LONGSTACK_SPANS', 'spans.jsonl;slowr=3', /slowr.*Did you mean "slower"\?/],
  ['LONGSTACK_BLOCKED', 'often', /\(ms\)\. Received "often"/],
  ['LONGSTACK_CAPTURE', 'two\nlines \u001b[31m', /Received "two\\nlines \\u001b\[31m"/]
]

for (const [name, value, sentence] of variables) {
  test(`the environment variable is rejected: ${name}=${JSON.stringify(value)}`, async (t) => {
    const { stdout, stderr, code } = await program(`
      setTimeout(() => { console.log(new Error('x').stack); process.exitCode = 7 }, 1)
      new (require('node:worker_threads').Worker)('1', { eval: true })`, { env: { [name]: value } })
    const lines = stderr.split('\n')
    t.is(lines.length, 2, stderr)
    t.true(lines[0].startsWith('longstack: '))
    t.true(lines[0].includes(name), 'the variable is named')
    t.regex(lines[0], sentence)
    t.regex(stdout, /── setTimeout\(1\)/, 'all other options are in force')
    t.is(code, 7)
  })
}

test('each wrong variable gets a line, the right ones count', async (t) => {
  const source = "setTimeout(() => setTimeout(() => console.log(new Error('x').stack), 1), 1)"
  const { stdout, stderr } = await node(['-r', register, '-e', source], {
    env: { LONGSTACK_FRAMES: 'x', LONGSTACK_MOOD: 'x', LONGSTACK_DEPTH: '1' }
  })
  t.is(stderr.trim().split('\n').length, 2)
  t.is(stdout.split('── setTimeout').length - 1, 1)
})

test('empty variables count as unset', async (t) => {
  const names = ['', '_FRAMES', '_DEPTH', '_CAPTURE', '_INTERNALS', '_ERRORS', '_HIDE', '_SIGNAL',
    '_BUDGET']
  const env = Object.fromEntries(names.map((name) => [`LONGSTACK${name}`, '']))
  const source = "setTimeout(() => console.log(new Error('x').stack), 1)"
  const { stdout, stderr } = await node(['-r', register, '-e', source], { env })
  t.is(stderr, '')
  t.regex(stdout, /── setTimeout\(1\)/)
})

test('valid variables are applied', async (t) => {
  const source = 'function a () { b() }; a(); function b () ' +
    "{ setTimeout(() => setTimeout(() => console.log(new Error('x').stack), 1), 1) }"
  const { stdout, stderr } = await node(['-r', register, '-e', source], {
    env: {
      LONGSTACK: 'TIMER',
      LONGSTACK_FRAMES: '1',
      LONGSTACK_DEPTH: '2',
      LONGSTACK_INTERNALS: 'no',
      LONGSTACK_CAPTURE: 'js'
    }
  })
  t.is(stderr, '')
  t.is(stdout.split('── setTimeout').length - 1, 2)
  t.regex(stdout, /── setTimeout\(1\) .*\n {4}at b .*\n\n?$/)
})

test('options that a program omits come from the environment', async (t) => {
  const source = `
    const trace = require(${JSON.stringify(require.resolve('../..'))})
    trace.enable({ depth: 1 })
    const print = () => console.log(JSON.stringify(trace.chain().map((hop) => hop.frames.length)))
    setTimeout(function one () { setTimeout(function two () { print() }, 1) }, 1)
  `
  const { stdout, stderr } = await program(source, { env: { LONGSTACK: 'TIMER', LONGSTACK_FRAMES: '1' } })
  t.is(stderr, '')
  t.deepEqual(JSON.parse(stdout), [1])
  const alone = await program(source, { preload: false, env: { LONGSTACK_FRAMES: 'many' } })
  t.is(alone.stderr.match(/\n/g).length, 1)
  t.regex(alone.stderr, /LONGSTACK_FRAMES/)
})

test('options may be text: names with commas, and a size with its unit', (t) => {
  const { defaultOptions, parseOptions, rules } = require('../../lib/options')
  t.deepEqual(parseOptions({ filter: 'TCP, PIPE' }, defaultOptions()).filter, ['TCP', 'PIPE'])
  const sizes = ['67108864', '64MiB', '64 MiB', '65536 kib', '1GiB'].map(rules.budget.fromText)
  t.deepEqual(sizes, [2 ** 26, 2 ** 26, 2 ** 26, 2 ** 26, 2 ** 30])
  t.deepEqual(['64MB', '1.5GiB', 'MiB'].map(rules.budget.fromText), ['64MB', '1.5GiB', 'MiB'], 'refused as they are')
  t.is(rules.frames.fromText('3KiB'), '3KiB')
})
