'use strict'

// Why something cannot be written, in words.

/** @type {Record<string, string>} */
const reasons = {
  ENOENT: 'its folder does not exist',
  ENOTDIR: 'its folder is a file',
  EISDIR: 'it is a folder',
  EACCES: 'it may not be written to',
  EPERM: 'it may not be written to',
  EROFS: 'its disk may only be read',
  ERR_ACCESS_DENIED: "Node's permission model forbids it",
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file may not grow any more',
  EMFILE: 'the process has too many open files',
  ENFILE: 'the system has too many open files',
  EPIPE: 'nobody reads it',
  ENXIO: 'nobody reads it',
  ECONNRESET: 'nobody reads it',
  EBADF: 'it is closed',
  EIO: 'the device fails',
  ELOOP: 'its links go round in circles',
  ENAMETOOLONG: 'its name is too long'
}

/** The same fact under several names is said once. @type {Record<string, string>} */
const sameAs = { ENXIO: 'EPIPE', ECONNRESET: 'EPIPE', EPERM: 'EACCES' }

/** @param {any} error @returns {{ code: string, why: string }} */
function faultOf (error) {
  const code = typeof error?.code === 'string' ? error.code : 'FAILED'
  return { code: sameAs[code] ?? code, why: reasons[code] ? `${reasons[code]} (${code})` : String(error?.message ?? error).split('\n', 1)[0].slice(0, 200) }
}

module.exports = { faultOf }
