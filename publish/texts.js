'use strict'

// Texts under another name: if a text names the package for Node or npm, its name is not `longstack`. The
// product, its command, LONGSTACK_ variables and file formats keep their names. Also code without its
// comments, which are half of lib/.

const acorn = require('acorn')

const NAME = 'longstack'

/**
 * Replaces `longstack` by a name wherever Node or npm resolve it: in an entry of `exports`, in require and
 * import, in a directory of node_modules, in an npm command, and in the name of a platform's package.
 * @param {string} text
 * @param {string} name
 * @param {string[]} entries keys of `exports`
 */
function rename (text, name, entries) {
  const paths = entries.filter((entry) => entry !== '.').map((entry) => escapeRegExp(entry.slice(1)))
  const rules = [
    `(?<![\\w@/.-])${NAME}(?=(?:${paths.join('|')})(?![\\w/-]))`,
    `(?<=\\b(?:require\\(|require\\.resolve\\(|import\\(|import |from )['"])${NAME}(?=['"])`,
    `(?<=\\bnode_modules[\\\\/])${NAME}(?![\\w.])`,
    `(?<=\\b(?:npx|npm (?:install|i|add|view)|(?:pnpm|yarn) add)(?: --?[\\w-]+)* )${NAME}(?![\\w/.-])`,
    `(?<![\\w@/.-])${NAME}(?=-(?:linux|linuxmusl|darwin)-(?:x64|arm64)\\b)`
  ]
  return text.replace(new RegExp(rules.join('|'), 'g'), name)
}

/** @param {string} text */
const escapeRegExp = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/**
 * Omits the parts of a document that apply only to a checkout, and includes those for a published package:
 * <!-- checkout -->…<!-- /checkout -->, and <!-- published: … -->.
 * @param {string} text
 */
function asPublished (text) {
  return text
    .replace(/<!-- checkout -->.*?<!-- \/checkout -->\n?/gs, '')
    .replace(/<!-- published:\s(.*?)\s-->/gs, '$1')
}

/**
 * Removes the comments of JavaScript, and lines without anything else.
 * @param {string} text
 * @param {boolean} isModule
 */
function withoutComments (text, isModule) {
  /** @type {acorn.Comment[]} */
  const comments = []
  const sourceType = isModule ? 'module' : 'script'
  acorn.parse(text, { ecmaVersion: 'latest', sourceType, allowHashBang: true, onComment: comments })
  let code = ''
  let end = 0
  for (const comment of comments.filter(({ start }) => !text.startsWith('#!', start))) {
    code += text.slice(end, comment.start)
    const isSpaced = /\s$/.test(code)
    if (!isSpaced && /\S/.test(text[comment.end] ?? '')) code += ' ' // between two words
    end = isSpaced && text[comment.end] === ' ' ? comment.end + 1 : comment.end
  }
  return `${code}${text.slice(end)}`.replace(/[ \t]+$/gm, '').replace(/\n{3,}/g, '\n\n')
}

/** A string, a character, or a comment of C++ or of a declaration in TypeScript; there are no raw strings. */
const TOKENS = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\/.*|\/\*[^]*?\*\//g

/** Removes the comments of C++ or of declarations, and empty lines. @param {string} text */
function withoutCStyleComments (text) {
  const code = text.replace(TOKENS, (token) => token.startsWith('/') ? '' : token)
  return code.replace(/[ \t]+$/gm, '').replace(/\n{2,}/g, '\n')
}

module.exports = { NAME, asPublished, rename, withoutComments, withoutCStyleComments }
