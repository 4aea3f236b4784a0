'use strict'

// What is in force and why, and what in this process stands in longstack's way. Loaded when asked for. It only looks:
// what cannot be known without a change to the process is undefined.

const { AsyncResource } = require('node:async_hooks')
const fs = require('node:fs')
const { version } = require('../package.json')
const { binaryFile, target } = require('./stacks/binding')
const { unsafe } = require('./warnings')

const MANY_FRAMES = 200 // from here on creating any error of the program is expensive
const UNSUPPORTED_MODES = ['ASKED_UNSUPPORTED', 'FILTER_UNSUPPORTED']

/** What the permission model may forbid, and the flag that allows it: not every Node knows all. @type {Record<string, string>} */
const scopes = { addon: '--allow-addons', child: '--allow-child-process', 'fs.read': '', 'fs.write': '', net: '--allow-net', worker: '--allow-worker' }

/**
 * @typedef {object} Facts
 * @property {string} longstack its version
 * @property {string} node its version
 * @property {boolean} safe a caught stack overflow is harmless on this Node while hooks are on (CVE-2025-59466)
 * @property {boolean} enabled
 * @property {string} engine `native` or `js`
 * @property {string} engineWhy
 * @property {import('./reasons').EngineCode} engineCode
 * @property {string} clock `on` where the run that made an error is told by the time of its making, else `off`
 * @property {string} clockWhy
 * @property {import('./reasons').ClockCode} clockCode
 * @property {string | undefined} binary the file of the native engine for this Node, where there is one
 * @property {string} mode `full` or `light`
 * @property {string} modeWhy
 * @property {import('./reasons').ModeCode} modeCode
 * @property {string[]} filter
 * @property {boolean} promiseHooks promises make events, for whomever
 * @property {boolean | undefined} otherHooks of async_hooks; undefined where longstack's own hides them
 * @property {boolean} destroyHook somebody has one, which makes every promise dear
 * @property {boolean} errors errors get hops; false: their stacks are left alone, or tracing is off
 * @property {string} formatter who formats stacks: longstack around …, or who else
 * @property {string[]} sourceMaps what maps frames besides longstack
 * @property {unknown} stackTraceLimit undefined where there is none, or an accessor
 * @property {boolean} frozenIntrinsics
 * @property {string[] | undefined} forbidden by Node's permission model; undefined where that is off
 * @property {number} pressure the share of the budget that is used
 * @property {number} dropped hops lost
 * @property {string | undefined} fault the first defect of longstack itself; please report it
 *
 * @typedef {Facts & { notes: string[], text: string }} Diagnosis notes: what to know or to do, a sentence each; text: all of it, for people
 * @typedef {{ isWrapped: boolean, formatter: Function | undefined, isSettable: boolean }} Holder of Error.prepareStackTrace
 */

/**
 * @param {{ stats: import('./tracer/stats').Stats, filter: string[], formatter: Holder }} given
 * @returns {Diagnosis}
 */
function examine ({ stats, filter, formatter }) {
  const { enabled, engine, engineWhy, clock, clockWhy, mode, modeWhy, dropped, fault } = stats
  const file = binaryFile(target(), process.versions.modules)
  /** @type {Facts} */
  const facts = {
    longstack: version,
    node: process.versions.node,
    safe: !unsafe(process.versions.node),
    enabled,
    engine,
    engineWhy,
    engineCode: stats.engineCode,
    clock,
    clockWhy,
    clockCode: stats.clockCode,
    binary: fs.existsSync(file) ? file : undefined,
    mode,
    modeWhy,
    modeCode: stats.modeCode,
    filter,
    errors: stats.errors,
    // Node marks a promise that async_hooks saw; V8's own hooks leave no trace.
    promiseHooks: (stats.enabled && stats.mode === 'full') || Object.getOwnPropertySymbols(Promise.resolve()).length > 0,
    otherHooks: enabled ? undefined : hooked(),
    destroyHook: Object.getOwnPropertySymbols(new AsyncResource('longstack')).some((symbol) => symbol.description === 'destroyed'),
    formatter: `${formatter.isWrapped ? 'longstack around ' : ''}${nameOf(formatter.formatter)}`,
    sourceMaps: mappers(),
    stackTraceLimit: Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.value,
    frozenIntrinsics: Object.isFrozen(Array.prototype),
    forbidden: forbidden(),
    pressure: stats.bytes / stats.budget,
    dropped,
    fault
  }
  const notes = judge(facts, formatter)
  return { ...facts, notes, text: text(facts, notes) }
}

/** @param {Facts} facts @param {Holder} holder @returns {string[]} */
function judge (facts, { isWrapped, isSettable }) {
  const { enabled, engineWhy, modeWhy, stackTraceLimit: limit } = facts
  /** @type {Array<[unknown, string]>} */
  const rules = [
    [facts.fault, `longstack met a defect of its own, please report it: ${facts.fault}`],
    [!enabled, 'Tracing is off: trace.enable(), or node -r longstack/register.'],
    [!facts.safe, `On Node ${facts.node} a caught stack overflow is fatal while async hooks are on (CVE-2025-59466); update Node.`],
    [enabled && facts.engine === 'js' && facts.engineCode !== 'ASKED', `The native engine is not in force: ${engineWhy}.`],
    [enabled && facts.engine === 'native' && facts.clock === 'off', `Who made an error is known seldom, for runs of one function cannot be told apart: ${facts.clockWhy}.`],
    [enabled && UNSUPPORTED_MODES.includes(facts.modeCode), `The mode is full: ${modeWhy}.`],
    [enabled && facts.mode === 'light' && facts.promiseHooks, "Somebody else's hook makes events of promises, which light mode would save."],
    [facts.destroyHook, "Somebody else's destroy hook makes every promise dear."],
    [enabled && !facts.errors, 'Errors keep the stack that Node gives them (errors: false): trace.stack(error) and trace.chain(error) tell the chain.'],
    [facts.errors && !isWrapped && !isSettable, 'Error.prepareStackTrace cannot be set here: errors keep their short stack, trace.stack(error) tells the chain.'],
    [facts.errors && !isWrapped && isSettable, `Error.prepareStackTrace was set by ${facts.formatter}: longstack wraps it when the next callback begins.`],
    [!(Number(limit) >= 1), `Error.stackTraceLimit is ${limit}: errors have no frames, and get no hops.`],
    [Number(limit) >= MANY_FRAMES, `Error.stackTraceLimit is ${limit}: every error of the program is dear.`],
    [facts.forbidden?.length, `Node's permission model forbids ${facts.forbidden?.join(', ')}.`],
    [facts.pressure > 0.5, 'More than half of the budget is used, so chains are cut short: raise it, or filter.'],
    [facts.dropped > 0, `${facts.dropped} hops were dropped: chains cut at their depth, or promises past the budget.`]
  ]
  return rules.filter(([holds]) => holds).map(([, sentence]) => sentence)
}

/** @param {Facts} facts @param {string[]} notes */
function text (facts, notes) {
  const on = (/** @type {boolean | undefined} */ is) => is === undefined ? 'not known' : is ? 'on' : 'off'
  const rows = Object.entries({
    longstack: `${facts.longstack}, Node ${facts.node}, ${target()}`,
    tracing: facts.enabled ? `on, filter ${facts.filter.join(',')}` : 'off',
    engine: `${facts.engine} (${facts.engineWhy})`,
    clock: `${facts.clock} (${facts.clockWhy})`,
    binary: facts.binary ?? 'none',
    mode: `${facts.mode} (${facts.modeWhy})`,
    hooks: `of promises ${on(facts.promiseHooks)}, others ${on(facts.otherHooks)}`,
    errors: facts.errors ? 'with hops' : facts.enabled ? 'left alone' : 'without hops',
    'stacks by': facts.formatter,
    'source maps': facts.sourceMaps.join(', ') || 'longstack',
    'stack limit': String(facts.stackTraceLimit),
    'budget used': `${Math.round(facts.pressure * 100)} %`
  })
  return [...rows.map(([name, value]) => `${name.padEnd(14)} ${value}`), ...notes.map((note) => `- ${note}`)].join('\n')
}

/** @param {Function | undefined} formatter of stacks */
function nameOf (formatter) {
  if (typeof formatter !== 'function') return 'nobody'
  if (formatter.name === 'ErrorPrepareStackTrace') return 'Node'
  if (/\bwrapCallSite\(/.test(Function.prototype.toString.call(formatter))) return 'source-map-support'
  return formatter.name === '' ? 'a function without a name' : `a function called ${formatter.name}`
}

/** What maps frames in this process. */
function mappers () {
  const files = Object.keys(require.cache).map((file) => file.replaceAll('\\', '/'))
  const names = ['ts-node', 'source-map-support'].filter((name) => files.some((file) => file.includes(`/node_modules/${name}/`)))
  return /** @type {any} */ (process).sourceMapsEnabled === true ? ['Node', ...names] : names
}

/** Is any hook on? An AsyncResource needs the name of a type only where one is. */
function hooked () {
  try {
    return typeof new AsyncResource('') !== 'object'
  } catch {
    return true
  }
}

/** What Node's permission model forbids. @returns {string[] | undefined} */
function forbidden () {
  const { permission } = /** @type {any} */ (process)
  const known = (/** @type {string} */ flag) => flag === '' || process.allowedNodeEnvironmentFlags.has(flag)
  return permission && Object.keys(scopes).filter((scope) => known(scopes[scope]) && permission.has(scope) === false)
}

module.exports = { examine }
