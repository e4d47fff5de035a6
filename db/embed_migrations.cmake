# cmake -DOUT=migrations.c -DFILES=a.sql,b.sql -P embed_migrations.cmake
# Writes the migration scripts, in the order given, as C arrays.
string(REPLACE "," ";" FILES "${FILES}")
set(arrays "")
set(table "")
set(n 0)
foreach(file IN LISTS FILES)
  math(EXPR n "${n} + 1")
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
  string(REPLACE "0x0a, " "0x0a,\n    " bytes "${bytes}")
  string(APPEND arrays "static const char migration_${n}[] = {\n    ${bytes}0};\n\n")
  string(APPEND table "    migration_${n},\n")
endforeach()
file(WRITE "${OUT}" "// Generated from db/migrations/*.sql by db/embed_migrations.cmake at build time. Do not edit.\n"
  "#include \"db/schema.h\"\n\n${arrays}const char *const rssm_schema_migrations[] = {\n${table}};\n"
  "const uint32_t rssm_schema_version = ${n};\n")
