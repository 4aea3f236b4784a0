'use strict'

// Names of what LONGSTACK_SOCKET makes, for both ends: NAME is a link into the directory NAME.longstack, in
// which each thread of each process has a socket PID.THREAD; in a container the number of its process
// namespace follows, since several may share the directory. PID.THREAD.busy is what a blocked thread notes.

/**
 * @typedef {object} SocketName
 * @property {number} pid as the process itself sees it
 * @property {number} threadId
 * @property {string | undefined} namespace
 */

/** @param {string} name a LONGSTACK_SOCKET */
const directoryOf = (name) => `${name}.longstack`

/** @param {string} socket */
const noteOf = (socket) => `${socket}.busy`

/** @param {string} file @returns {string | undefined} the socket that it is the note of */
const socketOfNote = (file) => /^(.*)\.busy$/s.exec(file)?.[1]

/** @param {SocketName} parts @returns {string} */
function nameOf ({ pid, threadId, namespace }) {
  return `${pid}.${threadId}${namespace === undefined ? '' : `.${namespace}`}`
}

/** @param {string} name @returns {SocketName | undefined} undefined: of something else */
function parseName (name) {
  const [, pid, threadId, namespace] = /^(\d+)\.(\d+)(?:\.([a-z0-9]+))?$/.exec(name) ?? []
  return pid === undefined ? undefined : { pid: Number(pid), threadId: Number(threadId), namespace }
}

module.exports = { directoryOf, nameOf, noteOf, parseName, socketOfNote }
