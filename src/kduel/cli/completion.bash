%(complete_func)s() {
    local IFS=$'\n' type value
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
        dir) compopt -o dirnames ;;
        file) compopt -o default ;;
        plain)
            COMPREPLY+=("$value")
            [[ $value != *: ]] || compopt -o nospace
            ;;
        esac
    done < <(COMP_WORDS=${COMP_LINE:0:COMP_POINT} COMP_CWORD=0 COMP_WORDBREAKS=$COMP_WORDBREAKS \
        %(complete_var)s=bash_complete "$1" 2>/dev/null)
}
complete -o nosort -F %(complete_func)s %(prog_name)s
