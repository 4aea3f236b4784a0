'use strict'

// The protocol between a command and a process: JSON messages, one per line, and the file names of
// LONGSTACK_SOCKET. NAME is a link into the directory NAME.longstack. There, each thread of each process has
// a socket PID.THREAD. In a container the number of its PID namespace follows, since several containers may
// share the directory. PID.THREAD.busy is the note of a blocked thread.

const { attempt } = require('../files')

const { parse } = JSON // programs replace it

/**
 * @typedef {object} SocketName
 * @property {number} pid as the process itself sees it
 * @property {number} threadId
 * @property {string | undefined} namespace
 */

/**
 * Creates a reader that takes text in arbitrary chunks and calls `onMessage` with each object in it.
 * @param {(message: any, length: number) => void} onMessage length: characters of its line
 * @param {object} limits
 * @param {number} limits.maxLine characters; a longer line is dropped
 * @param {() => void} [limits.onTooLong] called when a line is dropped
 * @param {(line: string) => void} [onOther] called with each line that is not an object
 * @returns {(text: string) => void}
 */
function createLineReader (onMessage, { maxLine, onTooLong = () => {} }, onOther = () => {}) {
  let rest = ''
  return (text) => {
    const [first, ...others] = text.split('\n')
    rest += first // joined only here: a profile arrives in a thousand chunks
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

/** @param {string} line @returns {any} undefined if it is not an object */
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

/** @param {string} name @returns {SocketName | undefined} undefined if it is no name of a socket */
function parseName (name) {
  const [, pid, threadId, namespace] = /^(\d+)\.(\d+)(?:\.(?!busy$)([a-z0-9]+))?$/.exec(name) ?? []
  return pid === undefined ? undefined : { pid: Number(pid), threadId: Number(threadId), namespace }
}

module.exports = { createLineReader, directoryOf, nameOf, noteOf, parseName, parseObject }
