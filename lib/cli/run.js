'use strict'

// longstack run: node -r longstack/register, with a flag for every option. The program takes the place of this process
// where Node can do that (22.15 and later, not on Windows), so that signals, standard streams, process id and exit code
// are its own; elsewhere it is a child whose signals and end are passed on.

const { rules, parse: parseOptions, defaults } = require('../options')
const { describe, parse, whole, Wrong } = require('./flags')
const { print } = require('./terminal')

/** @type {Record<keyof import('../options').Options, string>} */
const purposes = {
  filter: 'whose resources get a stack',
  frames: 'frames kept per hop',
  depth: 'hops shown per chain',
  mode: 'light makes no events of promises where Node can do without',
  capture: 'the capture engine',
  internals: 'also show node: frames, hops of Node\'s own, and longstack\'s own frames',
  errors: 'leave the stacks of errors alone: trace.stack(error) tells the chain',
  hide: 'files whose frames are folded into a count',
  signal: 'print open handles and why on this signal',
  spans: 'where spans go',
  propagate: 'send a traceparent header with requests that are made',
  blocked: 'report synchronous runs longer than this',
  budget: 'what contexts and stacks may take'
}

/** What is allowed in other words than in a program. @type {Record<string, string>} */
const allowedHere = {
  filter: 'names with commas, for example TCP,PIPE',
  hide: '"node_modules" or a regular expression over file names'
}

const MS = 1000 // of quiet, after which what is open is a leak

/** @type {Record<string, string>} */
const words = { filter: 'NAMES', spans: 'OUT', frames: 'N', depth: 'N', budget: 'BYTES', blocked: 'MS', signal: 'NAME', hide: 'FILES' }

/** @type {import('./flags').Flags} */
const own = {
  'fail-on-leak': {
    type: 'optional',
    value: 'MS',
    says: `exit with code 3, and say what is open and who opened it, when the program does nothing for MS ms (default ${MS}) and does not end. A repeating timer that goes on is no work`
  },
  'node-options': { type: 'string', value: 'FLAGS', says: 'flags for node itself, for example "--enable-source-maps --max-old-space-size=4096"' }
}

/** @returns {import('./flags').Flags} one for each option */
function optionFlags () {
  return Object.fromEntries(Object.entries(rules).map(([name, { initial, allowed, variable }]) => {
    const purpose = purposes[/** @type {keyof typeof purposes} */ (name)]
    const as = `; as ${variable}${shown(initial)}`
    if (typeof initial === 'boolean') return [flagOf(name), { type: 'boolean', says: `${purpose}${as}${initial ? '=off' : ''}` }]
    return [name, { type: 'string', value: words[name], says: `${purpose}: ${allowedHere[name] ?? allowed}${as}` }]
  }))
}

/** An option that is on by default has a flag that switches it off. @param {string} name of an option */
function flagOf (name) {
  return rules[/** @type {keyof typeof rules} */ (name)].initial === true ? `no-${name}` : name
}

/** @param {unknown} initial */
function shown (initial) {
  return initial === undefined || typeof initial === 'boolean' ? '' : `, default ${Array.isArray(initial) ? initial.join() : initial}`
}

const flags = { ...optionFlags(), ...own }

const help = `Runs a program with long stack traces, like node -r longstack/register.

  longstack run [flags] app.js [args of the program]

Flags stand before the script; what follows is the program's. An option that has no flag is as its variable says.

${describe(flags)}

Exit code: the program's; 3 for a leak, 2 for wrong usage of this command.
`

/** @param {string[]} args */
async function main (args) {
  const { flags: given, rest } = parse(args, flags, true)
  if (given.help) return await print(help)
  if (rest.length === 0) throw new Wrong('No script is named.')
  const env = { ...process.env, ...environment(given) }
  const preloads = ['-r', require.resolve('../register')]
  if (given['fail-on-leak'] !== undefined) {
    preloads.push('-r', require.resolve('../leak-watch'))
    Object.assign(env, require('../leak-watch').ask(given['fail-on-leak'] === true ? MS : whole('fail-on-leak', given['fail-on-leak'], 1)))
  }
  return await require('./replace-process').become([...split(given['node-options'] ?? ''), ...preloads, ...(rest[0].startsWith('-') ? ['--'] : []), ...rest], env)
}

/** The variables that say what the flags say. @param {Record<string, any>} given */
function environment (given) {
  /** @type {Record<string, string>} */
  const env = {}
  for (const [name, { variable, read }] of Object.entries(rules)) {
    const value = given[flagOf(name)]
    if (value === undefined) continue
    const text = flagOf(name) === name ? String(value) : 'off'
    check(name, read(text))
    env[variable] = text
  }
  return env
}

/** @param {string} name @param {unknown} value */
function check (name, value) {
  try {
    parseOptions({ [name]: value }, defaults())
  } catch (error) {
    throw new Wrong(`--${name}: ${/** @type {Error} */ (error).message}`)
  }
}

/** Words with spaces between them; quotes and backslashes as in NODE_OPTIONS. @param {string} text */
function split (text) {
  const found = text.match(/(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+/g) ?? []
  if (found.join('').length !== text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1').length) throw new Wrong('--node-options has a quote without its end.')
  return found.map((word) => word.replace(/\\(.)|"/g, '$1'))
}

module.exports = { help, main, split }
