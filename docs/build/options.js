'use strict'

// docs/options.md and lib/option-types.js, from lib/option-table.js.

const { optionTable } = require('../../lib/option-table')
const { table, wrap } = require('./markdown')

/** @typedef {import('../../lib/option-table').OptionRow} OptionRow */

const MIB = 2 ** 20

const HEAD = `# Options

An option is given in one of three ways, the first that is there counts:

    trace.enable({ frames: 20 })
    longstack run --frames 20 app.js
    LONGSTACK_FRAMES=20 node -r longstack/register app.js

A wrong option throws a \`TypeError\` with a [code](errors.md); a wrong variable is reported in one line on stderr,
and its default stays; a wrong flag ends \`longstack run\` with exit code 2. An empty variable counts as not set. A
boolean is \`1\`, \`true\`, \`on\`, \`yes\` or \`0\`, \`false\`, \`off\`, \`no\` in a variable.`

/** @returns {string} docs/options.md */
function optionsPage () {
  const rows = optionTable()
  const overview = table(['option', 'variable', 'default', 'purpose'], rows.map((row) =>
    [`[\`${row.name}\`](#${row.name})`, `\`${row.variable}\``, defaultOf(row), row.purpose]))
  return [HEAD, overview, ...rows.map(section)].join('\n\n') + '\n'
}

/** @param {OptionRow} row @returns {string} */
function section (row) {
  const { allowed, details, flag, name, placeholder, purpose, type, unit, variable, written } = row
  const facts = [
    ['Type', `\`${plainType(type)}\``],
    ['Allowed', allowed],
    ...written === allowed ? [] : [['As text', written]],
    ...unit === undefined ? [] : [['Unit', unit]],
    ['Default', defaultOf(row)],
    ['Variable', `\`${variable}\``],
    ['Flag', `\`--${flag}${placeholder === undefined ? '' : ` ${placeholder}`}\``]
  ]
  const list = facts.map(([title, text]) => `- ${title}: ${text}`).join('\n')
  const sentence = `${purpose[0].toUpperCase()}${purpose.slice(1)}.`
  return [`## ${name}`, wrap(sentence), list, ...details === undefined ? [] : [wrap(details)]].join('\n\n')
}

/** @param {OptionRow} row @returns {string} */
function defaultOf ({ initial, unit }) {
  if (initial === undefined) return 'none'
  if (typeof initial === 'boolean') return initial ? 'on' : 'off'
  if (unit === 'bytes') return `${Number(initial) / MIB} MiB (${initial})`
  return `\`${Array.isArray(initial) ? `['${initial.join("', '")}']` : initial}\``
}

/** @param {string} type @returns {string} without the files that types are in */
function plainType (type) {
  return type.replace(/import\('[^']+'\)\./g, '')
}

/** @returns {string} lib/option-types.js */
function optionTypes () {
  const properties = optionTable().flatMap((row) => {
    const { name, purpose, type, unit } = row
    const ofUnit = unit === undefined || purpose.startsWith(unit) || purpose.includes(`${unit} `) ? '' : `, ${unit}`
    const text = `@property {${type}} ${name} ${purpose}${ofUnit}; default ${defaultOf(row).replaceAll('`', '')}`
    return wrap(text, 105).split('\n').map((line, index) => ` * ${index === 0 ? '' : '  '}${line}`)
  })
  return `'use strict'

// The type of the options. Generated from option-table.js (npm run docs); never loaded.

/**
 * @typedef {import('./stacks/chain').HopFrame} Frame
 *
 * @typedef {object} Options
${properties.join('\n')}
 */

module.exports = {}
`
}

module.exports = { optionTypes, optionsPage }
