'use strict'

// The state of files, asked for so that the program does not notice. Node has one array for the answers of
// all fs.*statSync calls, and on Node 20 and 22 its realpathSync reads there what the call before left: after
// fs.fstatSync of a pipe or socket it resolves no symbolic link (`isFileType(statValues, S_IFIFO)` in
// lib/fs.js). The answers as BigInts are in another array, which nothing reads behind the call.

const { fstatSync, lstatSync, statSync } = require('node:fs')

const OPTIONS = Object.freeze({ bigint: true })

/**
 * @param {number} fd
 * @returns {import('node:fs').BigIntStats}
 * @throws {NodeJS.ErrnoException}
 */
const stateOfOpen = (fd) => fstatSync(fd, /** @type {{ bigint: true }} */ (OPTIONS))

/**
 * @param {string} path of which links are followed
 * @returns {import('node:fs').BigIntStats}
 * @throws {NodeJS.ErrnoException}
 */
const stateOf = (path) => statSync(path, /** @type {{ bigint: true }} */ (OPTIONS))

/**
 * @param {string} path whose last part may be a link, and is not followed
 * @returns {import('node:fs').BigIntStats}
 * @throws {NodeJS.ErrnoException}
 */
const stateOfName = (path) => lstatSync(path, /** @type {{ bigint: true }} */ (OPTIONS))

module.exports = { stateOf, stateOfName, stateOfOpen }
