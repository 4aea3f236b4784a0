'use strict'

// Assignments of environment variables as shells read them, whatever is in the value.

/** @type {Record<string, (name: string, value: string) => string>} */
const assignments = {
  sh: (name, value) => `export ${name}='${value.replaceAll("'", "'\\''")}'`,
  fish: (name, value) => `set -gx ${name} '${value.replace(/['\\]/g, '\\$&')}'`,
  // It takes typographic quotes for straight ones: about_Quoting_Rules
  powershell: (name, value) => `$env:${name} = '${value.replace(/['\u2018-\u201b]/g, '$&$&')}'`,
  cmd: (name, value) => `@set "${name}=${escapeForCmd(value)}"`
}

/** @type {Record<string, keyof assignments>} */
const shells = {
  sh: 'sh', bash: 'sh', zsh: 'sh', fish: 'fish', powershell: 'powershell', pwsh: 'powershell', cmd: 'cmd'
}

/**
 * Escapes a value for a batch file, within double quotes: a quote in the value ends them, and what is between
 * that and the next one is code of the shell's.
 * @param {string} value
 */
function escapeForCmd (value) {
  let isQuoted = true
  return value.replace(/["%&|<>^()]/g, (char) => {
    if (char === '"') isQuoted = !isQuoted
    if (char === '%') return '%%'
    return isQuoted || char === '"' ? char : `^${char}`
  })
}

/**
 * @param {string} shell one of `shells`
 * @param {Record<string, string>} variables
 * @returns {string} one line for each
 */
function assign (shell, variables) {
  const assignment = assignments[shells[shell]]
  return Object.entries(variables).map(([name, value]) => `${assignment(name, value)}\n`).join('')
}

module.exports = { assign, shells: Object.keys(shells) }
