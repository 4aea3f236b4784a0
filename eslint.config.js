'use strict'

const neostandard = require('neostandard')

module.exports = [
  ...neostandard({ ignores: ['node_modules', 'types', 'test/fixtures/maps', '.cache'] }),
  { rules: { '@stylistic/max-len': ['error', { code: 190 }] } }
]
