'use strict'

// trace.doctor(): settings in force and their reasons, and problems of this process. Loaded on the first
// call. Changes nothing: a fact that cannot be read without changing the process is undefined.

const { AsyncResource } = require('node:async_hooks')
const fs = require('node:fs')
const path = require('node:path')
const { attempt } = require('./files')
const { createInspectable, formatRows } = require('./format/inspect')
const { readLazy } = require('./objects')
const { binaryName, findFile, ownManifest, target } = require('./platform')
const { isTested } = require('./stacks/tested')
const { isUnsafeVersion } = require('./warnings')

/**
 * Scopes of the permission model, by the flag that grants them; '' stands for a flag that every Node knows.
 * @type {Record<string, string>}
 */
const scopes = {
  addon: '--allow-addons',
  child: '--allow-child-process',
  'fs.read': '',
  'fs.write': '',
  net: '--allow-net',
  worker: '--allow-worker'
}

/**
 * @typedef {object} Facts
 * @property {string} longstack version of longstack
 * @property {string[]} copies copies of the package in this process, by version and directory; the first
 *   traces
 * @property {string} node version of Node
 * @property {boolean} safe a caught stack overflow is harmless on this Node while hooks are on
 *   (CVE-2025-59466)
 * @property {boolean} enabled
 * @property {string} engine `native` or `js`
 * @property {string} engineWhy
 * @property {import('./reasons').EngineCode} engineCode
 * @property {string} clock `on` if an error's creation time identifies its callback, else `off`
 * @property {string} clockWhy
 * @property {import('./reasons').ClockCode} clockCode
 * @property {string | undefined} binary file of the native engine for this Node, if there is one
 * @property {string | undefined} trial file with the result of the engine's trial run on an untested
 *   platform; delete it to try again
 * @property {string[]} filter
 * @property {boolean} promiseHooks promises create events, for longstack or for another hook
 * @property {boolean | undefined} otherHooks other async_hooks are on; undefined if longstack's own hide them
 * @property {boolean} destroyHook another library has a destroy hook, which makes every promise expensive
 * @property {boolean | 'print'} errors true: errors get hops; `print`: hops are added on printing; false:
 *   stacks are unchanged, or tracing is off
 * @property {string} formatter formatter of stacks: longstack around Node, around another formatter, or
 *   another
 * @property {string[]} sourceMaps other libraries and Node features that map frames
 * @property {unknown} stackTraceLimit undefined if there is none, or it is an accessor
 * @property {boolean} frozenIntrinsics
 * @property {string[] | undefined} forbidden denied scopes of Node's permission model; undefined if that is
 *   off
 * @property {number} pressure used share of the budget; 1 is all of it
 * @property {number} dropped lost hops
 * @property {string | undefined} fault first defect of longstack itself; please report it
 * @property {string | undefined} faultCode code of the defect, or the name of its class
 *
 * @typedef {object} Problem
 * @property {ProblemCode} code
 * @property {string} message
 *
 * @typedef {(facts: Facts, formatter: FormatterState) => string | false} Rule returns the message of a
 *   problem, or false if there is none
 *
 * @typedef {Facts & { notes: string[], problems: Problem[], text: string }} Diagnosis
 *   Facts and problems of this process. Each problem has a code (docs/errors.md); `notes` has only the
 *   messages of the problems, `text` is everything in readable form.
 * @typedef {{ isWrapped: boolean, formatter: Function | undefined, isSettable: boolean }} FormatterState
 *   state of Error.prepareStackTrace
 */

const DEFAULT_FRAMES = 10 // default of V8: the program has set a lower limit
const MANY_FRAMES = 200 // creating any error is expensive from here on
const HIGH_PRESSURE = 0.5 // chains are cut from here on, see the option budget

/**
 * Possible problems: a code that never changes, the condition, and the message. Listed in this order;
 * docs/errors.md is generated from them (npm run docs).
 * @satisfies {Record<string, Rule>}
 */
const rules = {
  FAULT: ({ fault }) => fault !== undefined &&
    `longstack has an internal fault; please report it: ${fault}`,
  SEVERAL_COPIES: ({ copies: [first, ...others] }) => others.length > 0 &&
    `Several copies of longstack are loaded: ${first} traces; it also serves ${others.join(', ')}.`,
  TRACING_OFF: ({ enabled }) => !enabled &&
    `Tracing is off. Call trace.enable(), or start with node -r ${ownManifest().name}/register.`,
  UNSAFE_NODE: ({ safe, node }) => !safe &&
    `On Node ${node} a caught stack overflow is fatal while async hooks are on (CVE-2025-59466); ` +
      'update Node.',
  ENGINE_JS: ({ enabled, engine, engineCode, engineWhy, trial }) =>
    enabled && engine === 'js' && engineCode !== 'ASKED' &&
    `The native engine is not in use: ${engineWhy}.` +
      (trial === undefined ? '' : ` Delete ${trial} to try again.`),
  CLOCK_OFF: ({ enabled, engine, clock, clockWhy }) => enabled && engine === 'native' && clock === 'off' &&
    'Errors can rarely be attributed to a single callback, because runs of the same function cannot be ' +
      `told apart: ${clockWhy}.`,
  OTHER_DESTROY_HOOK: ({ destroyHook }) => destroyHook &&
    'The destroy hook of another library makes every promise expensive.',
  ERRORS_OFF: ({ enabled, errors }) => enabled && !errors &&
    'Error stacks are left as Node makes them (errors: false); trace.stack(error) and ' +
      'trace.chain(error) include the hops.',
  FORMATTER_FIXED: ({ errors }, { isWrapped, isSettable }) => errors === true && !isWrapped && !isSettable &&
    'Error.prepareStackTrace cannot be set here, so errors keep their short stacks; trace.stack(error) ' +
      'includes the hops.',
  FORMATTER_REPLACED: ({ errors, formatter }, { isWrapped, isSettable }) =>
    errors === true && !isWrapped && isSettable &&
    `Error.prepareStackTrace was set by ${formatter}: longstack wraps it when the next callback begins.`,
  NO_FRAMES: ({ stackTraceLimit }) => !(Number(stackTraceLimit) >= 1) &&
    `Error.stackTraceLimit is ${stackTraceLimit}: errors have neither frames nor hops.`,
  FEW_FRAMES: ({ stackTraceLimit }) =>
    Number(stackTraceLimit) >= 1 && Number(stackTraceLimit) < DEFAULT_FRAMES &&
    `Error.stackTraceLimit is ${stackTraceLimit}: errors and hops have at most that many frames.`,
  MANY_FRAMES: ({ stackTraceLimit }) => Number(stackTraceLimit) >= MANY_FRAMES &&
    `Error.stackTraceLimit is ${stackTraceLimit}: creating any error is expensive.`,
  PERMISSIONS: ({ forbidden }) => forbidden !== undefined && forbidden.length > 0 &&
    `Node's permission model denies ${forbidden.join(', ')}.`,
  BUDGET: ({ pressure }) => pressure > HIGH_PRESSURE &&
    'More than half of the budget is used, so chains are cut short. Raise the budget, or set a filter.',
  DROPPED_HOPS: ({ dropped }) => dropped > 0 &&
    `${dropped} hops were dropped: chains cut at 192 steps, or promises past the budget.`
}

/** @typedef {keyof typeof rules} ProblemCode */

/**
 * @param {Facts} facts
 * @param {FormatterState} formatter
 * @returns {Problem[]}
 */
function problemsOf (facts, formatter) {
  return /** @type {Array<[ProblemCode, Rule]>} */ (Object.entries(rules)).flatMap(([code, rule]) => {
    const message = rule(facts, formatter)
    return message === false ? [] : { code, message }
  })
}

/**
 * Examines the process.
 * @param {object} state
 * @param {import('./stats').Stats} state.stats
 * @param {string[]} state.filter
 * @param {string[]} state.copies directories
 * @param {FormatterState} state.formatter
 * @returns {Diagnosis}
 */
function examine ({ stats, filter, copies, formatter }) {
  const file = attempt(() => findFile(binaryName(process.versions.modules)))
  /** @type {Facts} */
  const facts = {
    longstack: ownManifest().version,
    copies: copies.map(nameOfCopy),
    node: process.versions.node,
    safe: !isUnsafeVersion(process.versions.node),
    enabled: stats.enabled,
    engine: stats.engine,
    engineWhy: stats.engineWhy,
    engineCode: stats.engineCode,
    clock: stats.clock,
    clockWhy: stats.clockWhy,
    clockCode: stats.clockCode,
    binary: file,
    trial: trialOf(file),
    filter,
    errors: stats.errors,
    // Node marks a promise that async_hooks saw (lib/internal/async_hooks.js); V8's own hooks leave no mark.
    promiseHooks: stats.enabled || Object.getOwnPropertySymbols(Promise.resolve()).length > 0,
    otherHooks: stats.enabled ? undefined : isAnyHookOn(),
    destroyHook: isDestroyHookOn(),
    formatter: `${formatter.isWrapped ? 'longstack around ' : ''}${nameOf(formatter.formatter)}`,
    sourceMaps: mappers(),
    stackTraceLimit: Object.getOwnPropertyDescriptor(Error, 'stackTraceLimit')?.value,
    frozenIntrinsics: Object.isFrozen(Array.prototype),
    forbidden: forbiddenScopes(),
    pressure: stats.bytes / stats.budget,
    dropped: stats.dropped,
    fault: stats.fault,
    faultCode: stats.faultCode
  }
  const problems = problemsOf(facts, formatter)
  const notes = problems.map(({ message }) => message)
  return inspectableDiagnosis({ ...facts, notes, problems, text: textOf(facts, notes) })
}

/** @param {string | undefined} file the addon @returns {string | undefined} its trial's result file */
function trialOf (file) {
  if (file === undefined || isTested(target())) return undefined
  return attempt(() => require('./stacks/trial').resultFile(target(), file))
}

/** @param {Facts} facts */
function errorsInWords ({ errors, enabled }) {
  if (errors === 'print') return 'with hops when printed'
  if (errors) return 'with hops'
  return enabled ? 'unchanged' : 'without hops'
}

/** @param {Facts} facts @param {string[]} notes */
function textOf (facts, notes) {
  const rows = formatRows({
    longstack: `${facts.longstack}, Node ${facts.node}, ${target()}`,
    tracing: facts.enabled ? `on, filter ${facts.filter.join(',')}` : 'off',
    engine: `${facts.engine} (${facts.engineWhy})`,
    clock: `${facts.clock} (${facts.clockWhy})`,
    binary: facts.binary ?? 'none',
    ...(facts.trial === undefined ? {} : { trial: facts.trial }),
    'promise events': facts.promiseHooks ? 'on' : 'off',
    'other hooks': otherHooksOf(facts.otherHooks),
    errors: errorsInWords(facts),
    'stacks by': facts.formatter,
    'source maps': facts.sourceMaps.join(', ') || 'longstack',
    'stack limit': String(facts.stackTraceLimit),
    'budget used': `${Math.round(facts.pressure * 100)} %`
  })
  return [rows, ...notes.map((note) => `- ${note}`)].join('\n')
}

/** @param {string} directory of a copy of the package @returns {string} its version and directory */
function nameOfCopy (directory) {
  const file = path.join(directory, 'package.json')
  const version = attempt(() => JSON.parse(fs.readFileSync(file, 'utf8')).version) ?? 'a version'
  return `${version} in ${directory}`
}

/** @param {boolean | undefined} isOn whether async_hooks besides longstack's are on */
function otherHooksOf (isOn) {
  if (isOn === undefined) return "cannot be told apart from longstack's own"
  return isOn ? 'on' : 'none'
}

const inspectableDiagnosis = createInspectable((/** @type {Diagnosis} */ { text }) => {
  return { text, title: 'Diagnosis' }
})

/** @param {Function | undefined} formatter of stacks */
function nameOf (formatter) {
  if (typeof formatter !== 'function') return 'none'
  if (formatter.name === 'ErrorPrepareStackTrace') return 'Node'
  if (/\bwrapCallSite\(/.test(Function.prototype.toString.call(formatter))) return 'source-map-support'
  return formatter.name === '' ? 'a function without a name' : `a function called ${formatter.name}`
}

/** Names the other libraries and Node features that map frames in this process. */
function mappers () {
  const files = Object.keys(require.cache).map((file) => file.replaceAll('\\', '/'))
  const names = ['ts-node', 'source-map-support']
    .filter((name) => files.some((file) => file.includes(`/node_modules/${name}/`)))
  return /** @type {any} */ (process).sourceMapsEnabled === true ? ['Node', ...names] : names
}

/** An AsyncResource checks the name of its type only while a hook is on (lib/async_hooks.js). */
const isAnyHookOn = () => attempt(() => new AsyncResource('')) === undefined

/** An AsyncResource notes that it was destroyed only while a destroy hook is on (lib/async_hooks.js). */
function isDestroyHookOn () {
  const symbols = Object.getOwnPropertySymbols(new AsyncResource('longstack'))
  return symbols.some(({ description }) => description === 'destroyed')
}

/** @returns {string[] | undefined} undefined if the permission model is off */
function forbiddenScopes () {
  const { permission } = /** @type {any} */ (process)
  if (!permission) return undefined
  const knownFlags = readLazy(process, 'allowedNodeEnvironmentFlags')
  const isKnown = (/** @type {string} */ flag) => flag === '' || knownFlags.has(flag)
  return Object.keys(scopes).filter((scope) => isKnown(scopes[scope]) && !permission.has(scope))
}

module.exports = { examine, rules }
