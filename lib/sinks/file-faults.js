'use strict'

// Why a file cannot be written to, as a code and in words.

/** @type {Record<string, string>} */
const reasons = {
  ENOENT: 'its directory does not exist',
  ENOTDIR: 'its directory is a file',
  EISDIR: 'it is a directory',
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'its file system is read-only',
  ERR_ACCESS_DENIED: "Node's permission model forbids it",
  ENOSPC: 'the disk is full',
  EDQUOT: 'the disk quota is used up',
  EFBIG: 'the file has reached its maximum size',
  EMFILE: 'the process has too many open files',
  ENFILE: 'the kernel has too many open files',
  EPIPE: 'it has no reader',
  ENXIO: 'it has no reader',
  ECONNRESET: 'it has no reader',
  EBADF: 'it is closed',
  EIO: 'the device reports an error',
  ESTALE: 'the file server no longer knows it',
  ELOOP: 'its symbolic links form a circle',
  ENAMETOOLONG: 'its name is too long'
}

/** Errors that libuv has no name for (its uv_err_name), which are known by their number. */
const unnamedCodes = /** @type {const} */ (['EDQUOT', 'ESTALE'])

/** Codes of one and the same fact, which is reported once. @type {Record<string, string>} */
const sameAs = { ENXIO: 'EPIPE', ECONNRESET: 'EPIPE', EPERM: 'EACCES' }

/** A slow reader: nothing is wrong. @type {Set<string | undefined>} */
const busyCodes = new Set(['EAGAIN', 'EBUSY'])
/**
 * The rest of a line can follow later; after any other fault the file is opened again and the line written
 * whole.
 * @type {Set<string | undefined>}
 */
const passingCodes = new Set([...busyCodes, 'ENOSPC', 'EDQUOT', 'EFBIG', 'EIO', 'ENOMEM', 'EINTR'])

/** @param {any} error @returns {string | undefined} */
function codeOf (error) {
  const code = error?.code
  if (code !== 'UNKNOWN') return typeof code === 'string' ? code : undefined
  const { constants } = require('node:os') // only here: the program may be the first that loads it
  return unnamedCodes.find((name) => constants.errno[name] === -error.errno) ?? code
}

/** @param {any} error @returns {{ code: string, reason: string }} */
function faultOf (error) {
  const code = codeOf(error) ?? 'FAILED'
  const reason = reasons[code] === undefined
    ? String(error?.message ?? error).split('\n', 1)[0].slice(0, 200)
    : `${reasons[code]} (${code})`
  return { code: sameAs[code] ?? code, reason }
}

module.exports = { busyCodes, codeOf, faultOf, passingCodes }
