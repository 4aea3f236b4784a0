'use strict'

// What trace.doctor() finds to be wrong: a code that never changes, when it holds, and its sentence. In the
// order in which they are listed. docs/errors.md is made of them (npm run docs).

/**
 * @typedef {import('./doctor').Facts} Facts
 * @typedef {import('./doctor').FormatterState} FormatterState
 *
 * @typedef {object} Problem
 * @property {ProblemCode} code
 * @property {string} message
 *
 * @typedef {object} Rule
 * @property {(facts: Facts, formatter: FormatterState) => boolean} holds
 * @property {(facts: Facts) => string} sentence
 */

const DEFAULT_FRAMES = 10 // of V8: a lower limit was set by the program
const MANY_FRAMES = 200 // from here on creating any error is expensive
const HIGH_PRESSURE = 0.5 // from here on chains are cut, see the option budget

/** @satisfies {Record<string, Rule>} */
const rules = {
  FAULT: {
    holds: ({ fault }) => fault !== undefined,
    sentence: ({ fault }) => `longstack met a defect of its own, please report it: ${fault}`
  },
  SEVERAL_COPIES: {
    holds: ({ copies }) => copies.length > 1,
    sentence: ({ copies: [first, ...others] }) =>
      `Several copies of longstack are loaded: ${first} traces, and serves ${others.join(', ')}.`
  },
  TRACING_OFF: {
    holds: ({ enabled }) => !enabled,
    sentence: () => 'Tracing is off: trace.enable(), or node -r longstack/register.'
  },
  UNSAFE_NODE: {
    holds: ({ safe }) => !safe,
    sentence: ({ node }) => `On Node ${node} a caught stack overflow is fatal while async hooks are on ` +
      '(CVE-2025-59466); update Node.'
  },
  ENGINE_JS: {
    holds: ({ enabled, engine, engineCode }) => enabled && engine === 'js' && engineCode !== 'ASKED',
    sentence: ({ engineWhy }) => `The native engine is not in force: ${engineWhy}.`
  },
  CLOCK_OFF: {
    holds: ({ enabled, engine, clock }) => enabled && engine === 'native' && clock === 'off',
    sentence: ({ clockWhy }) => 'Which callback made an error is rarely known, since callbacks of the same ' +
      `function cannot be told apart: ${clockWhy}.`
  },
  OTHER_DESTROY_HOOK: {
    holds: ({ destroyHook }) => destroyHook,
    sentence: () => 'The destroy hook of another library makes every promise expensive.'
  },
  ERRORS_OFF: {
    holds: ({ enabled, errors }) => enabled && !errors,
    sentence: () => 'Errors keep the stack that Node gives them (errors: false): trace.stack(error) and ' +
      'trace.chain(error) have the hops.'
  },
  FORMATTER_FIXED: {
    holds: ({ errors }, { isWrapped, isSettable }) => errors === true && !isWrapped && !isSettable,
    sentence: () => 'Error.prepareStackTrace cannot be set here: errors keep their short stack, ' +
      'trace.stack(error) has the hops.'
  },
  FORMATTER_REPLACED: {
    holds: ({ errors }, { isWrapped, isSettable }) => errors === true && !isWrapped && isSettable,
    sentence: ({ formatter }) => `Error.prepareStackTrace was set by ${formatter}: ` +
      'longstack wraps it when the next callback begins.'
  },
  NO_FRAMES: {
    holds: ({ stackTraceLimit }) => !(Number(stackTraceLimit) >= 1),
    sentence: ({ stackTraceLimit }) =>
      `Error.stackTraceLimit is ${stackTraceLimit}: errors have no frames, and get no hops.`
  },
  FEW_FRAMES: {
    holds: ({ stackTraceLimit }) => Number(stackTraceLimit) >= 1 && Number(stackTraceLimit) < DEFAULT_FRAMES,
    sentence: ({ stackTraceLimit }) =>
      `Error.stackTraceLimit is ${stackTraceLimit}: errors have no more frames, those of hops included.`
  },
  MANY_FRAMES: {
    holds: ({ stackTraceLimit }) => Number(stackTraceLimit) >= MANY_FRAMES,
    sentence: ({ stackTraceLimit }) =>
      `Error.stackTraceLimit is ${stackTraceLimit}: creating any error is expensive.`
  },
  PERMISSIONS: {
    holds: ({ forbidden }) => forbidden !== undefined && forbidden.length > 0,
    sentence: ({ forbidden }) => `Node's permission model forbids ${forbidden?.join(', ')}.`
  },
  BUDGET: {
    holds: ({ pressure }) => pressure > HIGH_PRESSURE,
    sentence: () => 'More than half of the budget is used, so chains are cut short: raise it, or filter.'
  },
  DROPPED_HOPS: {
    holds: ({ dropped }) => dropped > 0,
    sentence: ({ dropped }) =>
      `${dropped} hops were dropped: chains cut at their depth, or promises past the budget.`
  }
}

/** @typedef {keyof typeof rules} ProblemCode */

/**
 * @param {Facts} facts
 * @param {FormatterState} formatter
 * @returns {Problem[]}
 */
function problemsOf (facts, formatter) {
  return /** @type {Array<[ProblemCode, Rule]>} */ (Object.entries(rules))
    .filter(([, { holds }]) => holds(facts, formatter))
    .map(([code, { sentence }]) => ({ code, message: sentence(facts) }))
}

module.exports = { problemsOf, rules }
