'use strict'

const test = require('ava')
const { defaultOptions, parseOptions, rules } = require('../../lib/options')

const base = Object.freeze(defaultOptions())

test('each default is undefined or valid, and each variable is LONGSTACK or starts with it', (t) => {
  for (const [name, { initial, accepts, variable }] of Object.entries(rules)) {
    t.true(initial === undefined || accepts(initial), name)
    t.regex(variable, /^LONGSTACK(_[A-Z]+)*$/)
  }
  t.is(new Set(Object.values(rules).map(({ variable }) => variable)).size, Object.keys(rules).length)
})

test('no argument, and undefined for an option, keep the current values', (t) => {
  const before = { ...base, frames: 7 }
  t.deepEqual(parseOptions(undefined, before), before)
  t.deepEqual(parseOptions({}, before), before)
  t.deepEqual(parseOptions({ frames: undefined }, before), before)
  t.not(parseOptions(undefined, before), before)
})

test('an array is the filter, copied', (t) => {
  const filter = ['TCP']
  const options = parseOptions(filter, base)
  t.deepEqual(options, { ...base, filter: ['TCP'] })
  t.not(options.filter, filter)
})

test('an option replaces the previous value, and others remain', (t) => {
  t.deepEqual(parseOptions({ frames: 3, errors: false }, base), { ...base, frames: 3, errors: false })
})

/** @type {Record<string, { good: unknown[], bad: unknown[] }>} */
const values = {
  frames: { good: [1, 200], bad: [0, 201, 1.5, '10', NaN, null] },
  depth: { good: [1, 1000], bad: [0, 1001] },
  budget: { good: [2 ** 20, 2 ** 40], bad: [2 ** 20 - 1, 2 ** 40 + 1, Infinity] },
  blocked: { good: [1, 3_600_000], bad: [0, 3_600_001, '50'] },
  capture: { good: ['auto', 'native', 'js'], bad: ['wasm'] },
  errors: { good: [true, false], bad: ['true', 1, null] },
  internals: { good: [true, false], bad: ['on'] },
  hide: { good: ['node_modules', /x/, () => true], bad: ['modules', {}, 1] },
  signal: { good: ['SIGUSR2', 'SIGHUP'], bad: ['SIGKILL', 'SIGSTOP', 'SIGUSR1', 'SIGPROF', 'USR2', 'toString', 12] }
}
for (const [name, { good, bad }] of Object.entries(values)) {
  test(`${name}: accepted and rejected values`, (t) => {
    for (const value of good) t.is(parseOptions({ [name]: value }, base)[name], value)
    for (const value of bad) {
      t.throws(() => parseOptions({ [name]: value }, base), { code: 'LONGSTACK_ERR_INVALID_OPTION', message: new RegExp(`"${name}"`) })
    }
  })
}

test('an unknown option is an error with a suggestion', (t) => {
  t.throws(() => parseOptions({ fraems: 3 }, base), { code: 'LONGSTACK_ERR_UNKNOWN_OPTION', message: /"frames"/ })
  t.throws(() => parseOptions({ hasOwnProperty: 3 }, base), { code: 'LONGSTACK_ERR_UNKNOWN_OPTION' })
})

test('filters are checked name by name', (t) => {
  t.throws(() => parseOptions({ filter: ['TPC'] }, base), { code: 'LONGSTACK_ERR_UNKNOWN_SUBSYSTEM' })
  t.throws(() => parseOptions({ filter: 'TPC' }, base), { code: 'LONGSTACK_ERR_UNKNOWN_SUBSYSTEM' })
})

test('anything but an array or object is an error', (t) => {
  for (const value of [null, 1, 'TCP', () => {}, new Map()]) {
    t.throws(() => parseOptions(value, base), { code: 'LONGSTACK_ERR_INVALID_OPTIONS' })
  }
})

test('variables that cannot be parsed stay text, for the message', (t) => {
  const { frames, errors, filter, hide } = rules
  t.deepEqual(['10', ' 10 ', '1e3', '-1', ''].map(frames.fromText), [10, 10, '1e3', '-1', ''])
  t.deepEqual(['1', 'TRUE', 'on', 'yes'].map(errors.fromText), [true, true, true, true])
  t.deepEqual(['0', 'false', 'Off', 'no'].map(errors.fromText), [false, false, false, false])
  t.is(errors.fromText('perhaps'), 'perhaps')
  t.deepEqual(filter.fromText(' TCP, ,-PROMISE,'), ['TCP', '-PROMISE'])
  t.deepEqual([hide.fromText('/a.b/'), hide.fromText('a'), hide.fromText('node_modules'), hide.fromText('(')], [/a.b/, /a/, 'node_modules', '('])
})
