'use strict'

// What both ends of asking a process know: messages are JSON, one a line; and the names of what
// LONGSTACK_SOCKET makes. NAME is a link into the directory NAME.longstack, in which each thread of each
// process has a socket PID.THREAD; in a container the number of its process namespace follows, since several
// may share the directory. PID.THREAD.busy is what a blocked thread notes.

const { attempt } = require('../files')

const { parse } = JSON // programs replace it

/**
 * @typedef {object} SocketName
 * @property {number} pid as the process itself sees it
 * @property {number} threadId
 * @property {string | undefined} namespace
 */

/**
 * Returns what takes a text that is cut anywhere, and calls `onMessage` with each object in it.
 * @param {(message: any, length: number) => void} onMessage length: characters of its line
 * @param {object} limits
 * @param {number} limits.maxLine characters, after which a line is forgotten
 * @param {() => void} [limits.onTooLong] called when one is
 * @param {(line: string) => void} [onOther] called with each line that is no object
 * @returns {(text: string) => void}
 */
function createLineReader (onMessage, { maxLine, onTooLong = () => {} }, onOther = () => {}) {
  let rest = ''
  return (text) => {
    const [first, ...others] = text.split('\n')
    rest += first // joined here alone: a profile comes in a thousand pieces
    for (const next of others) {
      const message = parseObject(rest)
      if (message === undefined) onOther(rest)
      else onMessage(message, rest.length)
      rest = next
    }
    if (rest.length <= maxLine) return
    rest = ''
    onTooLong()
  }
}

/** @param {string} line @returns {any} undefined: no object */
function parseObject (line) {
  const message = attempt(() => parse(line))
  return typeof message === 'object' && message !== null ? message : undefined
}

/** @param {string} name a LONGSTACK_SOCKET */
const directoryOf = (name) => `${name}.longstack`

/** @param {string} socket */
const noteOf = (socket) => `${socket}.busy`

/** @param {SocketName} parts @returns {string} */
function nameOf ({ pid, threadId, namespace }) {
  return `${pid}.${threadId}${namespace === undefined ? '' : `.${namespace}`}`
}

/** @param {string} name @returns {SocketName | undefined} undefined: of something else */
function parseName (name) {
  const [, pid, threadId, namespace] = /^(\d+)\.(\d+)(?:\.(?!busy$)([a-z0-9]+))?$/.exec(name) ?? []
  return pid === undefined ? undefined : { pid: Number(pid), threadId: Number(threadId), namespace }
}

module.exports = { createLineReader, directoryOf, nameOf, noteOf, parseName, parseObject }
