'use strict'

// Capabilities of the terminal behind a stream. chalk is loaded only to print on a terminal, or if colours
// are forced: it opens the standard streams.

const tty = require('node:tty')
const { pathToFileURL } = require('node:url')
const { attempt } = require('../files')

const DEFAULT_COLUMNS = 80
const MIN_COLUMNS = 40
// Valid in a URL, but not stripped by link removers: ansi in lib/internal/util/inspect.js, ansi-regex
const UNSTRIPPED = /[^\w/.:=?%@~-]/g
const [OPEN_LINK, CLOSE_LINK] = ['\u001b]8;;', '\u001b\\'] // OSC 8; ESC \ ends a string (ECMA-48)

/**
 * @typedef {'stdout' | 'stderr'} StreamName
 *
 * @typedef {object} Style
 * @property {any} colours chalk; undefined: no colours
 * @property {number | undefined} columns of a terminal, which gets a source line; undefined: not a terminal
 * @property {((text: string, file: string, line: number) => string) | undefined} link makes a location
 *   clickable; undefined unless the terminal declares support
 */

/** @type {Style} */
const plain = { colours: undefined, columns: undefined, link: undefined }

/** @param {StreamName} name */
function isTerminal (name) {
  return tty.isatty(name === 'stderr' ? 2 : 1)
}

/**
 * Returns the style for longstack's own output on a stream.
 * @param {StreamName} name
 * @returns {Style}
 */
function styleOf (name) {
  const columns = columnsOf(name)
  // chalk respects FORCE_COLOR, but not the others
  const { FORCE_COLOR, NO_COLOR, NODE_DISABLE_COLORS } = process.env
  const isPlain = FORCE_COLOR === undefined && (NO_COLOR || NODE_DISABLE_COLORS || columns === undefined)
  const chalk = isPlain ? undefined : loadChalk()
  if (chalk === undefined) return { ...plain, columns }
  const colours = name === 'stderr' ? chalk.chalkStderr : chalk.default
  return { colours: colours.level === 0 ? undefined : colours, columns, link: linkerOf(name) }
}

/**
 * Returns the style for output of util.inspect with colours. The stream is unknown.
 * @returns {Style}
 */
function inspectStyle () {
  return inspectedStyle((/** @type {StreamName[]} */ (['stdout', 'stderr'])).find(isTerminal))
}

/**
 * Returns the style for a fatal error that Node prints on stderr.
 * @returns {Style | undefined} undefined: no terminal
 */
function fatalStyle () {
  if (!isTerminal('stderr')) return undefined
  // The same check as in Node (afterInspector in lib/internal/errors.js).
  if (tty.WriteStream.prototype.getColorDepth() <= 2) return { ...plain, columns: columnsOf('stderr') }
  return inspectedStyle('stderr')
}

/** @param {StreamName | undefined} name of a terminal @returns {Style} with the colours that Node uses */
function inspectedStyle (name) {
  const chalk = loadChalk()
  const colours = chalk && new chalk.Chalk({ level: 1 })
  if (name === undefined) return { ...plain, colours }
  return { colours, columns: columnsOf(name), link: linkerOf(name) }
}

/**
 * Loads chalk.
 * @returns {any} undefined if it cannot be loaded: no descriptor is left, or its files are gone
 */
const loadChalk = () => attempt(() => require('chalk'))

/** @param {StreamName} name @returns {number | undefined} undefined: no terminal */
function columnsOf (name) {
  if (!isTerminal(name)) return undefined
  const { columns } = process[name]
  return Math.max(MIN_COLUMNS, columns > 0 ? columns : DEFAULT_COLUMNS)
}

/** First versions of terminals that support links, as in TERM_PROGRAM_VERSION. */
const linkingPrograms = /** @type {Record<string, string>} */ ({
  'iTerm.app': '3.1', WezTerm: '20200620', ghostty: '', WarpTerminal: '', Orca: ''
})

/**
 * Returns whether the terminal of an environment supports links (OSC 8), like supports-hyperlinks. Terminals
 * of editors link `file:line:column` themselves and open the line, which a link to a file may not do.
 * @param {NodeJS.ProcessEnv} env
 */
function hasLinks (env) {
  const { CI, FORCE_HYPERLINK, TEAMCITY_VERSION, TERM, TERM_PROGRAM = '', VTE_VERSION = '' } = env
  if (FORCE_HYPERLINK) return FORCE_HYPERLINK !== '0'
  if (env.WT_SESSION !== undefined) return true // Windows Terminal
  const isNone = CI || TEAMCITY_VERSION || process.platform === 'win32' || TERM === 'dumb'
  if (isNone || /^(vscode|zed)$/.test(TERM_PROGRAM)) return false
  if (Object.hasOwn(linkingPrograms, TERM_PROGRAM)) {
    const version = env.TERM_PROGRAM_VERSION ?? ''
    return version.localeCompare(linkingPrograms[TERM_PROGRAM], 'en', { numeric: true }) >= 0
  }
  // 5000 is 0.50.0, which crashes on links
  return Number(VTE_VERSION) > 5000 || TERM === 'alacritty' || TERM === 'xterm-kitty'
}

/**
 * Returns a function that makes links, if the terminal declares support.
 * @param {StreamName} name
 * @returns {Style['link']}
 */
function linkerOf (name) {
  if (!isTerminal(name) || !hasLinks(process.env)) return undefined
  const hasLines = process.env.TERM === 'xterm-kitty'
  return (text, file, line) => {
    const url = urlOf(file)
    if (url === undefined) return text
    return `${OPEN_LINK}${url}${hasLines ? `#${line}` : ''}${CLOSE_LINK}${text}${OPEN_LINK}${CLOSE_LINK}`
  }
}

/** @param {string} letter */
const escapeLetter = (letter) => `%${letter.charCodeAt(0).toString(16)}`

/**
 * Returns file://HOST/PATH: the terminal may be on another machine. The first letter and node_modules are
 * escaped, since Node colours the first working directory and node_modules in each line of a stack (markCwd
 * in lib/internal/util/inspect.js).
 * @param {string} file a path or a file: URL
 * @returns {string | undefined}
 */
function urlOf (file) {
  return attempt(() => {
    const { pathname } = file.startsWith('file:') ? new URL(file) : pathToFileURL(file)
    const escaped = pathname.replace(UNSTRIPPED, escapeLetter).replace(/[a-z]/i, escapeLetter)
      .replaceAll('node_modules', 'node%5fmodules')
    return `file://${encodeURIComponent(require('node:os').hostname())}${escaped}`
  })
}

module.exports = { fatalStyle, inspectStyle, styleOf }
