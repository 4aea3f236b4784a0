'use strict'

// Operation of a query, if the option `peek` allows reading the first bytes sent: verb and table, or command
// and collection. Literals, values and keys are never included. The reader stops at the first SQL character
// after which quotes may be miscounted.

const { types } = require('node:util')
const { own } = require('../objects')

const { apply } = Reflect
const { latin1Slice } = Buffer.prototype

const MAX_BYTES = 1024
const MAX_COMMANDS = 4
const OP_MSG = 2013
const HEADER = 21 // bytes of an OP_MSG before the first element of its document

/** Words before the table name in a statement, by verb. @type {Map<string, RegExp | undefined>} */
const BEFORE_TABLE = new Map()
const TABLES = {
  'SELECT DELETE': /^(?:from|join)$/i,
  'INSERT REPLACE MERGE': /^into$/i,
  UPDATE: /^update$/i,
  'WITH EXPLAIN': /^(?:from|into|join|update)$/i,
  'CREATE ALTER DROP TRUNCATE LOCK ANALYZE': /^table$/i,
  'BEGIN START COMMIT ROLLBACK SAVEPOINT RELEASE SET SHOW USE CALL GRANT REVOKE COPY': undefined,
  'VACUUM DEALLOCATE LISTEN NOTIFY': undefined
}
for (const [verbs, words] of Object.entries(TABLES)) {
  for (const verb of verbs.split(' ')) BEFORE_TABLE.set(verb, words)
}
const NO_TABLE = /^(?:if|not|exists|only|lateral|low_priority|quick|ignore|outfile|dumpfile|of|nowait|skip)$/i
const QUERY = /^(?:select|with|insert|update|delete)$/i
const TOKENS =
  /\s+|'[^'\\]*'|"[^"\\]*"|`\w*`|[a-z_][\w$]*(?:\.[a-z_][\w$]*)*|\$\d+|[^'"`\\#$\-/]|[-/](?![-*])/giy
const NAME = /^(?:[a-z_][\w$]*(?:\.[a-z_][\w$]*)*|"[\w.]+"|`\w+`)$/i
/** commands of MongoDB whose value is a collection */
const OF_COLLECTION = new Set((
  'find insert update delete aggregate count distinct findAndModify mapReduce create drop collMod validate ' +
  'createIndexes dropIndexes listIndexes killCursors'
).split(' '))
const COMMAND = /^[a-z][a-z0-9._-]{0,31}$/i

/**
 * @typedef {object} Operation
 * @property {string} system
 * @property {string} operation
 * @property {string[]} [commands] in order, if a pipeline was read to its end
 */

/** data of the write in progress @type {unknown} */
let held
let isVector = false

/**
 * Keeps the data that a socket writes, until `release`.
 * @param {object} socket
 * @param {unknown} writev whether the data is a list
 * @param {unknown} data
 */
function hold (socket, writev, data) {
  if (own(socket, '_tlsOptions') !== undefined) return
  held = data
  isVector = writev === true
}

function release () {
  held = undefined
}

/** Returns the operation of the data about to be written. @returns {Operation | undefined} if known */
function present () {
  if (held === undefined) return undefined
  const list = /** @type {any} */ (held)
  if (!isVector) return operationOf(textOf(list), list.length)
  let text = ''
  let size = 0
  for (let i = 0; i < list.length; i++) {
    const chunk = own(list[i], 'chunk')
    if (text.length < MAX_BYTES) text += textOf(chunk)
    size += chunk.length
  }
  return operationOf(text.slice(0, MAX_BYTES), size)
}

/** @param {unknown} chunk @returns {string} its first bytes, one character each */
function textOf (chunk) {
  if (typeof chunk === 'string') return chunk.slice(0, MAX_BYTES)
  if (!types.isUint8Array(chunk)) return ''
  return apply(latin1Slice, chunk, [0, Math.min(chunk.length, MAX_BYTES)])
}

/** @param {string} text first bytes @param {number} size of all bytes @returns {Operation | undefined} */
function operationOf (text, size) {
  return ofRedis(text, size) ?? ofPostgres(text, size) ?? ofMysql(text, size) ?? ofMongo(text, size)
}

/**
 * Reads RESP commands: only their names.
 * @param {string} text
 * @param {number} size
 * @returns {Operation | undefined}
 */
function ofRedis (text, size) {
  /** @type {string[]} */
  const commands = []
  /** @type {string[]} */
  const names = []
  let index = 0
  while (text[index] === '*') {
    const count = numberAt(text, index + 1)
    index = count.end
    for (let i = 0; i < count.value && index < text.length; i++) {
      if (text[index] !== '$') return undefined
      const { value: length, end: begin } = numberAt(text, index + 1)
      const name = text.slice(begin, begin + length).toUpperCase()
      if (i === 0 && name.length < length) break // continues after the bytes read
      if (i === 0 && !(length > 0 && COMMAND.test(name))) return undefined
      if (i === 0) commands.push(name)
      if (i === 0 && names.length < MAX_COMMANDS && !names.includes(name)) names.push(name)
      index = begin + length + 2
    }
  }
  if (names.length === 0) return undefined
  const operation = { system: 'redis', operation: names.join(', ') }
  return commands.length > 1 && index === size ? { ...operation, commands } : operation
}

/**
 * Reads a number. Returns no array: the program may have removed the iterators.
 * @param {string} text
 * @param {number} index
 * @returns {{ value: number, end: number }} end: end of its line
 */
function numberAt (text, index) {
  const end = text.indexOf('\r\n', index)
  if (end === -1) return { value: 0, end: text.length }
  return { value: Number(text.slice(index, end)) || 0, end: end + 2 }
}

/**
 * Reads a Query message, or a Parse message followed by others.
 * @param {string} text
 * @param {number} size
 * @returns {Operation | undefined}
 */
function ofPostgres (text, size) {
  const end = 1 + (text.charCodeAt(1) << 24 | text.charCodeAt(2) << 16 | text.charCodeAt(3) << 8 |
    text.charCodeAt(4))
  const isParse = text[0] === 'P' && end > 8 && end < size && (end >= MAX_BYTES || /[BDEHS]/.test(text[end]))
  if (!isParse && !(text[0] === 'Q' && end === size)) return undefined
  const start = isParse ? text.indexOf('\0', 5) + 1 : 5
  if (start === 0) return undefined
  const stop = text.indexOf('\0', start)
  return ofSql('postgresql', text.slice(start, stop === -1 ? text.length : stop), '"', stop === -1)
}

/**
 * Reads COM_QUERY or COM_STMT_PREPARE.
 * @param {string} text
 * @param {number} size
 * @returns {Operation | undefined}
 */
function ofMysql (text, size) {
  const command = text.charCodeAt(4)
  if (integerAt(text, 0) + 4 !== size || (command !== 0x03 && command !== 0x16)) return undefined
  return ofSql('mysql', text.slice(5), '`', size > MAX_BYTES)
}

/**
 * Reads the command and the collection of an OP_MSG.
 * @param {string} text
 * @param {number} size
 * @returns {Operation | undefined}
 */
function ofMongo (text, size) {
  const isMessage = integerAt(text, 0) === size && integerAt(text, 12) === OP_MSG
  if (!isMessage || text.charCodeAt(20) !== 0) return undefined
  const start = HEADER + 4
  const end = text.indexOf('\0', start + 1)
  const name = end === -1 ? '' : text.slice(start + 1, end)
  if (!COMMAND.test(name)) return undefined
  const isNamed = text.charCodeAt(start) === 2 && OF_COLLECTION.has(name)
  const collection = isNamed ? text.slice(end + 5, end + 4 + integerAt(text, end + 1)) : ''
  return { system: 'mongodb', operation: /^[\w.-]{1,127}$/.test(collection) ? `${name} ${collection}` : name }
}

/** @param {string} text @param {number} index */
function integerAt (text, index) {
  return text.charCodeAt(index) | text.charCodeAt(index + 1) << 8 | text.charCodeAt(index + 2) << 16 |
    text.charCodeAt(index + 3) << 24
}

/**
 * Reads the first statement of a query.
 * @param {string} system
 * @param {string} text
 * @param {string} quote around names; other quotes enclose literals
 * @param {boolean} isCut whether the text continues
 * @returns {Operation | undefined}
 */
function ofSql (system, text, quote, isCut) {
  const sql = text.replace(/^\s*(?:\/\*[^*]*\*\/\s*)?/, '')
  const verb = /^[a-z]+/i.exec(sql)?.[0].toUpperCase() ?? ''
  if (!BEFORE_TABLE.has(verb)) return undefined
  const before = BEFORE_TABLE.get(verb)
  const table = before === undefined ? '' : tableOf(sql, before, quote, isCut)
  return { system, operation: table === '' ? verb : `${verb} ${table}` }
}

/**
 * Returns the first table that a statement names, or ''.
 * @param {string} sql
 * @param {RegExp} before word before the table name
 * @param {string} quote
 * @param {boolean} isCut
 */
function tableOf (sql, before, quote, isCut) {
  let last = ''
  let depth = 0 // nesting of parentheses without a subquery: extract(year from created)
  TOKENS.lastIndex = 0
  for (let match = TOKENS.exec(sql); match !== null; match = TOKENS.exec(sql)) {
    const token = match[0]
    if (/^\s/.test(token) || NO_TABLE.test(token)) continue
    if (depth > 0 || (last === '(' && !QUERY.test(token))) {
      depth = Math.max(depth, 1) + Number(token === '(') - Number(token === ')')
      last = ')'
      continue
    }
    if (token === ';') break
    if (before.test(last) && NAME.test(token) && (/^\w/.test(token) || token[0] === quote)) {
      return isCut && TOKENS.lastIndex === sql.length ? '' : token.replace(/["`]/g, '')
    }
    last = /^distinct$/i.test(last) ? '' : token // `is distinct from` names no table
  }
  return ''
}

module.exports = { hold, operationOf, present, release }
