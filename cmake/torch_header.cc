// Exists so that CMake compiles the precompiled header of libtorch once.
