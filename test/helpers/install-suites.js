'use strict'

// Other people's packages, tests included.

const path = require('node:path')
const { installPackages } = require('./install-packages')

/**
 * @returns {{ modules: string, offline?: undefined } | { modules?: undefined, offline: string }} the
 *   node_modules folder, or why there is none; throws where it has to be there (CI)
 */
function install () {
  const { directory, offline } = installPackages('suites')
  return directory === undefined ? { offline } : { modules: path.join(directory, 'node_modules') }
}

module.exports = { install }
