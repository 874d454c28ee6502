# Compiles mariadb/handler against the headers that mariadb/setup/server prepared, links
# the engine in, and lays the result among links to the server's own plug-ins:
# target/plugin is a complete plug-in directory for mariadbd --plugin-dir.
# SANITIZE=address compiles the C++ with that sanitizer, in a directory of its own (see
# verify/sanitizers, and there how a server loads it).

# Each file takes long: as many at once as there are processors.
MAKEFLAGS += -j$(shell nproc)

env     := target/mariadb/current/env
from_env = $(shell . ./$(env) && printf %s "$$$(1)")
source  := $(call from_env,MARIADB_SOURCE)
config  := $(call from_env,MARIADB_CONFIG_DIR)
service := $(call from_env,MARIADB_SERVICES)
version := $(call from_env,MARIADB_VERSION)
server_plugins := $(call from_env,MARIADB_PLUGIN_DIR)

out     := $(if $(SANITIZE),target/sanitizers/plugin,target/plugin)
object  := $(out)-objects/$(version)
engine  := target/release/libperegrine_capi.a
handler := mariadb/handler
sources := $(filter-out $(handler)/tests/%,$(wildcard $(handler)/*.cc $(handler)/*/*.cc $(handler)/*/*/*.cc))
objects := $(sources:$(handler)/%.cc=$(object)/%.o)

CXX      ?= g++
# Warnings are errors in our code; the server's headers are not ours (-isystem).
CXXFLAGS := -std=c++17 -O2 -g1 -fPIC -Wall -Wextra -Werror
CPPFLAGS := -I $(handler) -I mariadb/capi/include -DMYSQL_DYNAMIC_PLUGIN -DDBUG_OFF -DHAVE_CONFIG_H -MMD -MP \
	-isystem $(config) -isystem $(source)/include -isystem $(source)/sql -isystem $(source) \
	-isystem $(source)/wsrep-lib/include -isystem $(source)/wsrep-lib/wsrep-API/v26
# The server finds the plug-in's declaration and its services by name, so those
# stay visible; the engine's own symbols do not.
LDFLAGS  := -shared -Wl,--exclude-libs,$(notdir $(engine)) -Wl,-z,relro,-z,now
LDLIBS   := -lpthread -ldl -lm
ifdef SANITIZE
CXXFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
LDFLAGS  += -fsanitize=$(SANITIZE)
endif

all: $(out)/ha_peregrine.so
	@find $(out) -xtype l -delete
	@for file in $(server_plugins)/*; do \
		[ -e "$(out)/$${file##*/}" ] || ln -s "$$file" $(out)/; done

$(out)/ha_peregrine.so: $(objects) $(engine) mariadb/setup/plugin.mk | $(out)
	$(CXX) $(LDFLAGS) -o $@ $(objects) $(engine) $(service) $(LDLIBS)

$(object)/%.o: $(handler)/%.cc mariadb/setup/plugin.mk $(env)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(CPPFLAGS) -c -o $@ $<

$(out):
	@mkdir -p $@

-include $(objects:.o=.d)

.PHONY: all
