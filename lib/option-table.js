'use strict'

// All that is known of each option, as one table: the rules of options.js, and what is written for people,
// which stands here. `longstack run --help`, docs/options.md and option-types.js are made of it (npm run
// docs).

const { rules } = require('./options')

/**
 * @typedef {keyof typeof rules} OptionName
 *
 * @typedef {object} OptionText
 * @property {string} purpose one sentence, without its full stop
 * @property {string} [flagPurpose] of the flag, where that switches the option off
 * @property {string} [placeholder] of the flag's value in the help
 * @property {string} [written] what is allowed as text, in a variable or a flag
 * @property {string} [type] in TypeScript, where the rule does not say it
 * @property {string} [details] more, in Markdown
 *
 * @typedef {object} OptionRow
 * @property {OptionName} name
 * @property {string} type in TypeScript
 * @property {string} allowed as a value of a program
 * @property {string} written as text, in a variable or a flag
 * @property {unknown} initial default value
 * @property {string | undefined} unit
 * @property {string} variable
 * @property {string} flag of `longstack run`, without its dashes
 * @property {string | undefined} placeholder undefined: the flag takes no value
 * @property {string} purpose
 * @property {string} flagPurpose
 * @property {string | undefined} details
 */

/** @type {Record<OptionName, OptionText>} */
const texts = {
  filter: {
    purpose: 'names of the subsystems whose resources get a stack',
    placeholder: 'NAMES',
    written: 'names with commas between them, for example TCP,PIPE',
    type: 'string[]',
    details: 'A name is a subsystem (`TCP`, `FS`, `PROMISE` …), a provider type (`TCPCONNECTWRAP`) or the ' +
      'type of an `AsyncResource` (`type:NAME` if it is in capitals). `-NAME` takes one away, `*` is all. ' +
      'Resources outside of the filter pass the chain on.'
  },
  frames: {
    purpose: 'frames kept per hop',
    placeholder: 'N',
    details: 'In a text each line counts as one frame, also a line of folded frames.'
  },
  depth: { purpose: 'hops kept per chain', placeholder: 'N' },
  capture: {
    purpose: 'the capture engine; auto is native where the addon loads, else js',
    placeholder: 'ENGINE'
  },
  internals: {
    purpose: 'fold nothing, and also show node: frames, raw types, hops of Node and frames of longstack',
    details: 'A text then has all that is known: no package is folded (`hide` has no effect), no test ' +
      'runner nor `npm`, it does not end at a request, and functions that V8 prints as `at async` are ' +
      'told again. [What a short text leaves out](hops.md#what-a-text-leaves-out).'
  },
  hide: {
    purpose: 'frames that a text folds into a count',
    placeholder: 'FILES',
    written: '"node_modules" or a regular expression for file names',
    type: "'node_modules' | RegExp | ((frame: Frame) => boolean)",
    details: 'Neighbours become a line such as `... 9 frames in express, router`. A function gets a frame ' +
      'and returns true to fold it; `() => false` folds none. What is data (`trace.chain()`, `--json`, ' +
      'spans) has all frames, and so has a text with `internals`.'
  },
  errors: {
    purpose: 'append hops to the stack of errors',
    flagPurpose: 'append no hops to the stack of errors; trace.stack(error) still has them',
    written: 'on, off or print',
    type: "boolean | 'print'",
    details: 'With `print` the stack stays that of V8, for [error trackers](trackers.md), and hops are ' +
      'where people read: what Node prints of uncaught errors, `console`, `util.inspect`. Where it is ' +
      'off, they are nowhere. In both, `.stack` and `Error.prepareStackTrace` stay as Node has them. ' +
      '`trace.stack(error)` and `trace.chain(error)` work either way.'
  },
  signal: {
    purpose: 'print the open handles, and who opened them, on this signal',
    placeholder: 'NAME',
    type: 'string | undefined'
  },
  spans: {
    purpose: 'write a span for each request and connection to this destination',
    placeholder: 'OUT',
    type: "undefined | import('./sinks/outputs').GivenOutputs",
    details: 'Names, thresholds and samples: [sinks.md](sinks.md). What a span contains: ' +
      '[spans.md](spans.md).'
  },
  socket: {
    purpose: 'answer longstack why, top and the like on this Unix socket',
    placeholder: 'PATH',
    type: 'string | undefined',
    details: 'A link into the directory `NAME.longstack`, which only its user may enter. There each thread ' +
      'of each process has a socket; a command that is given the name finds them all. See [live.md](live.md).'
  },
  propagate: { purpose: 'send a traceparent header with outgoing requests' },
  blocked: { purpose: 'report callbacks that block the event loop for longer than this', placeholder: 'MS' },
  budget: {
    purpose: 'memory that contexts and stacks may take',
    placeholder: 'BYTES',
    details: 'Past half of it chains lose their oldest hops, past it promises have none. ' +
      '`trace.stats().dropped` counts both.'
  }
}

/** @returns {OptionRow[]} */
function optionTable () {
  return /** @type {OptionName[]} */ (Object.keys(rules)).map((name) => {
    const { allowed, initial, unit, variable } = rules[name]
    const { details, flagPurpose, placeholder, purpose, written = allowed } = texts[name]
    const flag = initial === true ? `no-${name}` : name
    return {
      name,
      type: typeOf(name),
      allowed,
      written,
      initial,
      unit,
      variable,
      flag,
      placeholder,
      purpose,
      flagPurpose: flagPurpose ?? purpose,
      details
    }
  })
}

/** @param {OptionName} name @returns {string} */
function typeOf (name) {
  const { choices, initial, unit } = rules[name]
  const { type } = texts[name]
  if (type !== undefined) return type
  if (choices !== undefined) return choices.map((word) => `'${word}'`).join(' | ')
  if (unit === undefined) return 'boolean'
  return initial === undefined ? 'number | undefined' : 'number'
}

module.exports = { optionTable }
